/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KTAP for people: plan, diagnostics and result lines. The version line comes before the first.
 *
 * Each line is flushed at once: a run that the kernel cuts off must leave what it had to say.
 */
#ifndef SELFTEST_KTAP_H
#define SELFTEST_KTAP_H

#include <stdbool.h>

void ktap_plan(unsigned int tests);
void ktap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void ktap_result(bool passed, const char *name);
void ktap_skip(const char *name, const char *reason);

/* The whole document is one skip; only before ktap_plan(). */
void ktap_skip_all(const char *reason);

/* Nothing more will come, before or after the plan. */
void ktap_bail_out(const char *reason);

/* Has a result line said "not ok"? */
bool ktap_failed(void);

#endif
