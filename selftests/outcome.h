/* SPDX-License-Identifier: GPL-2.0-only */
/* How a program speaks and how it ends: JSON lines for a machine, KTAP for a person. */
#ifndef SELFTEST_OUTCOME_H
#define SELFTEST_OUTCOME_H

#include <stdbool.h>

enum {
	EXIT_PASSED = 0,	/* the kselftest codes … */
	EXIT_FAILED = 1,
	EXIT_ERROR = 2,		/* … but for this one: bad usage, or an error in JSON mode */
	EXIT_SKIPPED = 4,
};

/* Choose the language; call it before anything else may fail. */
void outcome_mode(bool json);
bool outcome_json(void);

/* Print one JSON line, flushed at once. A reader that has gone ends the program. */
void json_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The two ways out of the middle. Both run the atexit() handlers; fail() reports errno. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void unsupported(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Everything here needs CAP_NET_ADMIN, CAP_BPF and tracefs: in short, root. */
void require_root(void);

#endif
