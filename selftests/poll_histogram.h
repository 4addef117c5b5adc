/* SPDX-License-Identifier: GPL-2.0-only */
/* How much work each poll of a device's NAPIs did, counted in the kernel by a hist trigger. */
#ifndef SELFTEST_POLL_HISTOGRAM_H
#define SELFTEST_POLL_HISTOGRAM_H

#include <stdint.h>

#define POLL_NAPIS_MAX	64
/* What a NIC's driver gives a poll (NAPI_POLL_WEIGHT); a busy poll has less. */
#define POLL_BUDGET	64

struct napi_polls {
	uint64_t napi;		/* its address: the tracepoint gives no id */
	uint64_t by_work[POLL_BUDGET + 1];	/* polls; more work than the budget counts as it */
	uint64_t work;		/* frames, or what the driver counts as such */
};

struct poll_counts {
	struct napi_polls napis[POLL_NAPIS_MAX];
	int count;
};

/* Begin to count the polls of @device. Ends, with all its traces, when the process does. */
void poll_histogram_open(const char *device);

/* Read all counts since then. */
void poll_histogram_read(struct poll_counts *counts);

#endif
