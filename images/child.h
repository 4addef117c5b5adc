/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NAPI_CHILD_H
#define NAPI_CHILD_H

#include <sched.h>
#include <stdint.h>
#include <sys/types.h>

#include "plan.h"

/* One side of the pipes between the agent and a program; -1 where there is none. */
struct ends {
	int in;
	int out;
	int err;
	int status;	/* the child writes one struct failure to it, or nothing */
};

/* Which step failed, and how. Shorter than PIPE_BUF: written and read whole. */
struct failure {
	int32_t error;
	char step[12];
};

/* All that a child works with until its exec, in memory it shares with the agent. */
struct child;

/*
 * Make a child; it takes over the plan's memory. home_cpus are the CPUs a program may use unless
 * the plan says otherwise. NULL: out of memory, the plan is still the caller's.
 */
struct child *child_new(const struct plan *plan, const struct ends *ends,
			const cpu_set_t *home_cpus);

/* Start it. Returns its pid, or -1 with errno. */
pid_t child_start(struct child *child);

/* Free it, once its process has been waited for. */
void child_free(struct child *child);

/*
 * For the child itself. Report a failed step, its error as a system call returned it, and exit;
 * status is the child's end of the status pipe.
 */
void child_fail(int status, long error, const char *step) __attribute__((noreturn));
void child_exit(int code) __attribute__((noreturn));

/* The file modes: copy a file to stdout, or stdin to a file, and exit. */
#define CHILD_BLOCK	65536
void child_read_file(int status, const char *path, char *block) __attribute__((noreturn));
void child_write_file(int status, const char *path, uint32_t mode, char *block)
	__attribute__((noreturn));

#endif
