/* SPDX-License-Identifier: GPL-2.0-only */
/* One netdev deletion: a dummy device is made, then deleted against the clock. */
#ifndef SELFTEST_DELETION_H
#define SELFTEST_DELETION_H

#include "series.h"

/* Makes the first device, so that a kernel without dummy devices is told from the start. */
void deletion_open(void);

/* Fills in start and duration of @sample: the deletion alone, from request to ack. */
void deletion_run(struct sample *sample);

#endif
