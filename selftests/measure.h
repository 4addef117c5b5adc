/* SPDX-License-Identifier: GPL-2.0-only */
/* What the measuring programs share: options, pinning, and the loop of samples and gaps. */
#ifndef SELFTEST_MEASURE_H
#define SELFTEST_MEASURE_H

#include <stdint.h>

#include "series.h"

struct measurement {
	const char *name;
	const char *purpose;
	uint64_t gap_ns;	/* default pause between two operations */
	double gap_min_ms;	/* below it the pause would show in the samples */

	/* Choose method and phases. Runs as root, before the first line is printed. */
	void (*setup)(struct series *series);

	/* Do the operation once: series_begin(), then series_add() for each sample it gave. */
	void (*operate)(struct series *series);
};

/* main() of a measuring program. */
int measure_main(int argc, char **argv, const struct measurement *measurement);

#endif
