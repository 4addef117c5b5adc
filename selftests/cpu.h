/* SPDX-License-Identifier: GPL-2.0-only */
/* Which CPU runs what. Every change is read back: a mask that was asked for is no proof. */
#ifndef SELFTEST_CPU_H
#define SELFTEST_CPU_H

#include <stdbool.h>
#include <sys/types.h>

/* The highest CPU that is online and in our cpuset. */
int cpu_last(void);

/* Is @cpu online and in our cpuset? */
bool cpu_usable(int cpu);

/* Pin task @pid (0: this one) to @cpu alone; fails if it cannot be. */
void cpu_pin(pid_t pid, int cpu);

/* Is @cpu all that task @pid may run on? */
bool cpu_is_pinned(pid_t pid, int cpu);

/* Keep this process off @cpu; unsupported where there is no other. */
void cpu_avoid(int cpu);

#endif
