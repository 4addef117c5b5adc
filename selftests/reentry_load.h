/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The self-feeding load: a threaded NAPI that finds new work each time it has finished.
 *
 * On one side of a veth pair an XDP program redirects each frame to the other side, from where it
 * comes straight back. So every poll does a little work, completes and is due again at once, tens
 * of thousands of times a second, with no sender after the first frames.
 *
 * It ends by itself: past the deadline the XDP program drops. The process that would end it can be
 * held up by this very load for as long as that lasts.
 */
#ifndef SELFTEST_REENTRY_LOAD_H
#define SELFTEST_REENTRY_LOAD_H

#include <stdint.h>

#include "kthread.h"

/*
 * The devmap's bulk queue holds this many frames; one more and it is flushed inside the poll, which
 * then sees its own frames again, uses up its budget of 64 and is repolled. That path yields the
 * CPU, so the fault hides.
 */
#define REENTRY_FRAMES_MAX	16

struct reentry_load {
	char device[8];		/* the side with the threaded NAPI */
	char peer[8];
	int peer_index;
	struct napi_kthread kthread;
	struct reentry_shared *shared;
};

struct reentry_counters {
	uint64_t time_ns;
	uint64_t polls;
	uint64_t reentries;
	uint64_t work;
	struct kthread_stat kthread;
};

/*
 * Make the pair with its threaded NAPI pinned to @cpu; it goes at exit. No frame moves yet. @rate
 * is the most re-entries a second there will be, 0: as many as the CPU manages.
 */
void reentry_load_open(struct reentry_load *load, int cpu, int rate);

void reentry_load_start(struct reentry_load *load, int frames, uint64_t deadline_ns);

/* Drop the frames now; returns at once, whatever the kthread keeps from running. */
void reentry_load_stop(struct reentry_load *load);

void reentry_load_read(const struct reentry_load *load, struct reentry_counters *counters);

#endif
