/* SPDX-License-Identifier: GPL-2.0-only */
/* The kthread of a threaded NAPI: which one it is, and what the scheduler says of it. */
#ifndef SELFTEST_KTHREAD_H
#define SELFTEST_KTHREAD_H

#include <stdint.h>
#include <sys/types.h>

struct napi_kthread {
	pid_t pid;
	unsigned int napi_id;
	char comm[16];
};

struct kthread_stat {
	uint64_t runtime_ns;
	uint64_t voluntary;	/* context switches: it slept */
	uint64_t nonvoluntary;	/* context switches: it yielded or was preempted */
	int cpu;		/* the one it last ran on */
};

/*
 * Find the kthread of @device's only NAPI. The kernel names it napi/DEVICE-ID and cuts that at 15
 * characters: at most 4 of @device leave room for any id. Returns 0, or -1 where there is none.
 */
int kthread_find(const char *device, struct napi_kthread *kthread);

/*
 * Find those of all of @device's NAPIs, @max at most; NULL: of the CPUs' backlogs, whose numbers take
 * the place of ids. Returns how many there are.
 */
int kthread_find_all(const char *device, struct napi_kthread *kthreads, int max);

/* CPU time so far: cheap enough to be asked for often. */
uint64_t kthread_runtime_ns(pid_t pid);

void kthread_read_stat(pid_t pid, struct kthread_stat *stat);

#endif
