/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The wire format between the host (pytest_napi/guest/wire.py) and the agent.
 *
 * One reliable byte stream carries frames in both directions: a header of 16 bytes and a payload
 * of at most 64 KiB, all integers little endian. An id names one program; the host chooses it and
 * uses it once. Id 0 is the agent itself.
 *
 * The life of a program as the host sees it:
 *
 *   SPAWN -> STARTED, then STDOUT and STDERR as they come, each ended by an empty frame, and
 *            EXITED once. The order between these is not promised: a descendant may hold a
 *            stream open after EXITED, and a stream may end before it.
 *   SPAWN -> FAILED when a step before the program's own first instruction failed, or, for the
 *            file modes, at any later point. FAILED is the last word on its id.
 *
 * Flow control:
 *
 *   STDIN   At most WIRE_STDIN_CREDIT bytes of one program may be underway; CONSUMED gives credit
 *           back, also for bytes that the program did not want.
 *   STDOUT  HOLD stops the reading of a program's streams until RELEASE, so that its pipe fills up
 *           and it waits as it would for a slow reader on one machine. CLOSE gives up a stream for
 *           good: the program gets SIGPIPE, and the stream's empty frame confirms it.
 *   tty     A serial port has no flow control the agent can rely on: the line discipline drops
 *           what does not fit into its buffers. HELLO's "window" is the number of bytes the host
 *           may have underway on the whole channel (0: as many as it likes), RECEIVED gives
 *           them back.
 *
 * A guest that was saved and restored wakes under another host, which WAKE tells it: it sets its
 * clock, takes the seed, forgets what the former host had underway, and greets with HELLO again.
 */
#ifndef NAPI_WIRE_H
#define NAPI_WIRE_H

#include <stdint.h>

#define WIRE_MAGIC		0x4950414eu	/* "NAPI" */
#define WIRE_PAYLOAD_MAX	65536
#define WIRE_STDIN_CREDIT	65536
#define WIRE_SEED_SIZE		32	/* the key size of the kernel's random number generator */

/* Half of the smallest tty flip buffer limit Linux ever had (64 KiB). */
#define WIRE_TTY_WINDOW		32768

enum wire_kind {
	/* Host to guest */
	WIRE_SPAWN = 1,		/* struct wire_spawn, then its strings */
	WIRE_STDIN = 2,		/* bytes; empty: end of file */
	WIRE_SIGNAL = 3,	/* i32, to the program alone, not to its descendants */
	WIRE_PING = 4,		/* 8 opaque bytes */
	WIRE_RESIZE = 5,	/* u16 rows, u16 columns */
	WIRE_CLOSE = 6,		/* u32 mask of streams: 1 stdout, 2 stderr */
	WIRE_HOLD = 7,		/* u32 mask of streams: read no more of them */
	WIRE_RELEASE = 8,	/* u32 mask of streams: read them again */
	WIRE_WAKE = 9,		/* u64 CLOCK_REALTIME in ns, then a seed: WIRE_SEED_SIZE bytes */

	/* Guest to host */
	WIRE_HELLO = 64,	/* lines of "key=value" */
	WIRE_STARTED = 65,	/* u32 pid */
	WIRE_STDOUT = 66,	/* bytes; empty: end of file */
	WIRE_STDERR = 67,	/* bytes; empty: end of file */
	WIRE_CONSUMED = 68,	/* u32 bytes of stdin */
	WIRE_EXITED = 69,	/* struct wire_exited */
	WIRE_FAILED = 70,	/* i32 errno, then the name of the step */
	WIRE_PONG = 71,		/* the 8 bytes of PING, then u64 CLOCK_MONOTONIC in ns */
	WIRE_STUCK = 72,	/* u32 pid: SIGKILL was sent 2 s ago and the program still lives */
	WIRE_RECEIVED = 73,	/* u32 bytes of the channel's window */
};

struct wire_header {
	uint32_t magic;
	uint32_t length;
	uint32_t id;
	uint16_t kind;
	uint16_t reserved;
};

enum wire_mode {
	WIRE_MODE_EXEC = 0,
	WIRE_MODE_READ = 1,	/* the file argv[0] to stdout */
	WIRE_MODE_WRITE = 2,	/* stdin to the file argv[0], replacing its content */
};

#define WIRE_FLAG_PTY		1	/* stdin and stdout are a terminal of rows x cols; no stderr */
#define WIRE_FLAG_NO_STDIN	2	/* stdin is /dev/null */

#define WIRE_INHERIT_ENV	0xffff

/* NUL-terminated strings follow: cwd ("" is /), argc of argv, envc of the environment. */
struct wire_spawn {
	uint16_t mode;
	uint16_t flags;
	int32_t cpu;		/* -1: any */
	uint32_t timeout_ms;	/* 0: none; else SIGKILL to the program's process group */
	uint16_t argc;
	uint16_t envc;
	uint32_t file_mode;	/* permission bits of a file that WIRE_MODE_WRITE creates */
	uint16_t rows;
	uint16_t cols;
};

struct wire_exited {
	int32_t returncode;	/* exit status, or the negated signal number */
	uint8_t timed_out;
	uint8_t pad[3];
	uint64_t elapsed_ns;	/* from fork to the agent's wait */
};

_Static_assert(sizeof(struct wire_header) == 16, "wire format");
_Static_assert(sizeof(struct wire_spawn) == 24, "wire format");
_Static_assert(sizeof(struct wire_exited) == 16, "wire format");

#endif
