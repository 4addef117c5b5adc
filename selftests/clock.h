/* SPDX-License-Identifier: GPL-2.0-only */
/* Time: nanoseconds of CLOCK_MONOTONIC everywhere, the clock bpf_ktime_get_ns() reads too. */
#ifndef SELFTEST_CLOCK_H
#define SELFTEST_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts = { 0 };

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* For waits that nothing may cut short; stop_wait() is for all others. */
static inline void clock_sleep(uint64_t ns)
{
	const struct timespec ts = {
		.tv_sec = (time_t)(ns / NSEC_PER_SEC),
		.tv_nsec = (long)(ns % NSEC_PER_SEC),
	};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

#endif
