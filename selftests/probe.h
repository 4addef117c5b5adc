/* SPDX-License-Identifier: GPL-2.0-only */
/* When does this process enter and leave some kernel functions? By kprobe events, in ns. */
#ifndef SELFTEST_PROBE_H
#define SELFTEST_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBES_MAX 8

struct probe_call {
	unsigned int function;	/* index into the functions given to probes_open() */
	uint64_t start_ns;
	uint64_t duration_ns;	/* the trace gives whole microseconds */
};

/*
 * Make a trace instance of our own; it goes at exit, with every probe in it. Returns NULL, or the
 * reason why there can be no probes.
 */
const char *probes_open(void);

/*
 * Probe @name, or its clone with a compiler's suffix (.isra.0 …), as function @index. Returns
 * false where it has been inlined or must not be probed.
 */
bool probes_add(unsigned int index, const char *name);

/*
 * Take the calls made since the last time. Of calls within calls only the outermost counts: its
 * time holds the others' already. Returns how many of @max.
 */
size_t probes_read(struct probe_call *calls, size_t max);

#endif
