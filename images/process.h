/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NAPI_PROCESS_H
#define NAPI_PROCESS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "channel.h"
#include "plan.h"

/* A program's stdout or stderr. */
struct stream {
	int fd;			/* -1: ended */
	enum wire_kind kind;
	bool held;		/* the host wants no more for now */
};

enum { PROCESS_STREAMS = 2 };

/* A program, from SPAWN until the host knows all about its end. */
struct process {
	struct process *next;
	struct channel *channel;
	uint32_t id;
	pid_t pid;
	bool pty;
	bool started;		/* STARTED was sent */
	bool failed;		/* FAILED was sent: nothing else is */
	bool reaped;
	bool timed_out;

	struct child *child;
	int64_t start_ns;
	int64_t timeout_ns;	/* when to kill it; INT64_MAX: never */
	int64_t stuck_ns;	/* when a kill must have worked; INT64_MAX: none pending */

	int status_fd;		/* see struct failure; -1: read */
	struct stream streams[PROCESS_STREAMS];

	int in_fd;		/* -1: closed */
	bool in_ended;		/* the host has sent the end of file */
	size_t in_start;
	size_t in_used;
	unsigned char *in;	/* WIRE_STDIN_CREDIT bytes, allocated with the first */
};

/* process.c: the life of a program. */

/* Start one and take over the plan's memory. NULL if that failed; the host has been told. */
struct process *process_start(struct channel *channel, uint32_t id, struct plan *plan,
			      const cpu_set_t *home_cpus);

/* Tell the host which step of a program failed: the last word on its id. */
void process_send_failed(struct channel *channel, uint32_t id, int error, const char *step);

/* Read the status pipe: the program runs, or a step before it failed. */
void process_read_status(struct process *process);

/* Take note of its end; wait_status as from waitpid(). */
void process_reap(struct process *process, int wait_status);

/* Send a signal, to the program alone or to its process group. */
void process_signal(struct process *process, int signal);
void process_kill_group(struct process *process);

/* Do what is due by now, and say when something is due next (INT64_MAX: never). */
int64_t process_expire(struct process *process, int64_t now_ns);

/* Is there nothing more to tell the host about it? */
bool process_is_over(const struct process *process);

void process_free(struct process *process);

/* stream.c: its stdin, stdout and stderr. */

void process_input(struct process *process, const unsigned char *bytes, size_t length);
void process_pump_input(struct process *process);

/* Hand on some output, unless it is held or the channel full. False: there was none. */
bool process_pump_output(struct process *process, struct stream *stream);

/* End the streams of the mask; read them no more, or again. */
void process_close(struct process *process, uint32_t mask);
void process_hold(struct process *process, uint32_t mask, bool held);

void process_resize(struct process *process, uint16_t rows, uint16_t cols);

#endif
