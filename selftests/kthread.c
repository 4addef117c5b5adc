// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "kthread.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "outcome.h"

static FILE *open_proc(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return fopen(path, "re");
}

static void read_comm(pid_t pid, char comm[16])
{
	FILE *file = open_proc(pid, "comm");

	/* It may be gone by now. */
	if (!file || fscanf(file, "%15[^\n]", comm) != 1)
		*comm = '\0';
	if (file)
		fclose(file);
}

int kthread_find_all(const char *device, struct napi_kthread *kthreads, int max)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	char format[32];
	int found = 0;

	if (!proc)
		fail("cannot read /proc");
	if (device)
		snprintf(format, sizeof(format), "napi/%s-%%u", device);
	else
		strcpy(format, "backlog_napi/%u");
	while (found < max && (entry = readdir(proc))) {
		struct napi_kthread *kthread = &kthreads[found];

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		kthread->pid = atoi(entry->d_name);
		read_comm(kthread->pid, kthread->comm);
		if (sscanf(kthread->comm, format, &kthread->napi_id) == 1)
			found++;
	}
	closedir(proc);
	return found;
}

int kthread_find(const char *device, struct napi_kthread *kthread)
{
	return kthread_find_all(device, kthread, 1) == 1 ? 0 : -1;
}

static void read_switches(pid_t pid, struct kthread_stat *stat)
{
	FILE *file = open_proc(pid, "status");
	char line[256];

	if (!file)
		fail("cannot read the status of kthread %d", pid);
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &stat->voluntary);
		sscanf(line, "nonvoluntary_ctxt_switches: %" SCNu64, &stat->nonvoluntary);
	}
	fclose(file);
}

/* Field 39 of /proc/PID/stat. The second, the name, may hold spaces: count from its end. */
static void read_cpu(pid_t pid, struct kthread_stat *stat)
{
	FILE *file = open_proc(pid, "stat");
	char line[1024] = "", *field;

	if (!file || !fgets(line, sizeof(line), file))
		fail("cannot read the stat of kthread %d", pid);
	fclose(file);
	field = strrchr(line, ')');
	for (int i = 2; field && i < 39; i++)
		field = strchr(field + 1, ' ');
	stat->cpu = field ? atoi(field + 1) : -1;
}

uint64_t kthread_runtime_ns(pid_t pid)
{
	clockid_t clock;

	/* The same sum_exec_runtime as in schedstat, and there without CONFIG_SCHED_INFO. */
	if (clock_getcpuclockid(pid, &clock))
		fail("no CPU clock for kthread %d", pid);
	return clock_ns(clock);
}

void kthread_read_stat(pid_t pid, struct kthread_stat *stat)
{
	stat->runtime_ns = kthread_runtime_ns(pid);
	read_switches(pid, stat);
	read_cpu(pid, stat);
}
