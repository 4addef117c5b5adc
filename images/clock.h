/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NAPI_CLOCK_H
#define NAPI_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS	1000000LL
#define NS_PER_S	1000000000LL

/* CLOCK_MONOTONIC */
static inline int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

#endif
