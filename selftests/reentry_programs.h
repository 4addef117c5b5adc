/* SPDX-License-Identifier: GPL-2.0-only */
/* The two BPF programs of the self-feeding load, and the memory they share with it. */
#ifndef SELFTEST_REENTRY_PROGRAMS_H
#define SELFTEST_REENTRY_PROGRAMS_H

#include <stdint.h>

/* IEEE 802 local experimental: ours alone, so no other traffic on the pair enters the circle. */
#define REENTRY_ETHERTYPE	0x88b5

struct reentry_shared {
	/* Ours to write. */
	uint64_t deadline_ns;	/* from then on every frame is dropped */
	uint32_t pid;		/* the NAPI kthread, 0: count nothing */
	uint32_t reserved;
	uint64_t period_ns;	/* least time from one re-entry to the next, 0: none */
	/* The kernel's: one kthread writes, so plain additions are exact. */
	uint64_t polls;
	uint64_t reentries;	/* polls with 0 < work < budget */
	uint64_t work;
	uint64_t next_ns;	/* when the next re-entry is due */
};

/* XDP: send each of our frames out of @ifindex until the deadline. Returns the program. */
int reentry_load_redirect(int map, int ifindex);

/*
 * Raw tracepoint napi_poll(napi, work, budget): count, and hold each re-entry until it is due.
 * Returns the program.
 */
int reentry_load_counter(int map);

#endif
