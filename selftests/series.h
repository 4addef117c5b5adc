/* SPDX-License-Identifier: GPL-2.0-only */
/* Samples of one operation's duration: told as they come, and summed up against a bound. */
#ifndef SELFTEST_SERIES_H
#define SELFTEST_SERIES_H

#include <stddef.h>
#include <stdint.h>

#define PHASES_MAX 3

struct sample {
	uint64_t start_ns;
	uint64_t duration_ns;
	uint64_t phase_ns[PHASES_MAX];	/* the order of series.phases */
};

struct series {
	const char *name;
	const char *method;
	int cpu;
	uint64_t bound_ns;
	const char *phases[PHASES_MAX];	/* those that can be told apart */
	unsigned int phase_count;
	const char *phases_absent;	/* why some cannot, or NULL */
	struct sample *samples;
	size_t count;
};

void series_start(const struct series *series);

/* An operation begins: say so, for it may never end. */
void series_begin(void);

void series_add(struct series *series, const struct sample *sample);

/* Print what closes the series; returns the exit status. */
int series_end(const struct series *series);

/* Forget the samples, so that another window can begin. */
void series_clear(struct series *series);

#endif
