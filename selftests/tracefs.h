/* SPDX-License-Identifier: GPL-2.0-only */
/* Where tracefs is, and writing to its files. */
#ifndef SELFTEST_TRACEFS_H
#define SELFTEST_TRACEFS_H

#include <stdbool.h>

/* The mount point, mounted first if need be (and left so: others may use it by then); or NULL. */
const char *tracefs_root(void);

/*
 * Write @text as one write(2) to the file that the format names, appended: truncating kprobe_events
 * would remove the probes of everyone else. Returns false with errno set.
 */
bool tracefs_write(const char *text, const char *path_format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
