/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The request to stop early: SIGTERM, SIGINT, SIGHUP, and on demand the end of standard input.
 *
 * The signals stay blocked and are read from a descriptor, so none can cut an operation that is
 * being measured, and cleaning up never happens in a signal handler.
 */
#ifndef SELFTEST_STOP_H
#define SELFTEST_STOP_H

#include <stdbool.h>
#include <stdint.h>

void stop_init(bool stdin_too);

/* Sleep until @time_ns, or less when asked to stop. Returns true from the first request on. */
bool stop_wait(uint64_t time_ns);

/* Sleep until there is something to read on standard input, or a stop is asked for. */
bool stop_wait_input(void);

/* Was a stop asked for? Does not sleep. */
bool stop_requested(void);

#endif
