// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "cpu.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "outcome.h"

/*
 * All CPUs that are online and in our cpuset. An affinity we were started with does not count: it
 * says where a caller put us, not where the load or the measurement belongs. Lifting it is no loss,
 * the callers of this narrow it again.
 */
static cpu_set_t usable_cpus(void)
{
	cpu_set_t cpus;

	memset(&cpus, 0xff, sizeof(cpus));
	if (sched_setaffinity(0, sizeof(cpus), &cpus) || sched_getaffinity(0, sizeof(cpus), &cpus))
		fail("cannot read the CPU affinity");
	return cpus;
}

int cpu_last(void)
{
	cpu_set_t cpus = usable_cpus();
	int last = CPU_SETSIZE - 1;

	while (last > 0 && !CPU_ISSET(last, &cpus))
		last--;
	return last;
}

bool cpu_usable(int cpu)
{
	cpu_set_t cpus = usable_cpus();

	return cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &cpus);
}

bool cpu_is_pinned(pid_t pid, int cpu)
{
	cpu_set_t cpus;

	return !sched_getaffinity(pid, sizeof(cpus), &cpus) && CPU_COUNT(&cpus) == 1 &&
	       CPU_ISSET(cpu, &cpus);
}

void cpu_pin(pid_t pid, int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(pid, sizeof(cpus), &cpus))
		fail("cannot pin task %d to CPU %d", pid, cpu);
	if (!cpu_is_pinned(pid, cpu)) {
		errno = EBUSY;
		fail("task %d does not stay pinned to CPU %d", pid, cpu);
	}
}

void cpu_avoid(int cpu)
{
	cpu_set_t cpus = usable_cpus();

	CPU_CLR(cpu, &cpus);
	if (!CPU_COUNT(&cpus))
		unsupported("one CPU only: the load would lock out everything, itself included");
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fail("cannot keep off CPU %d", cpu);
}
