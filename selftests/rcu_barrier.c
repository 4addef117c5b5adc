// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long does rcu_barrier() take: until every RCU callback queued before it has run, everywhere?
 *
 * From 6.12 a module parameter of rcutree calls it on demand. Before, it is timed by kprobe inside
 * the deletion of a dummy device, which calls it.
 */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "deletion.h"
#include "measure.h"
#include "outcome.h"
#include "probe.h"

#define PARAMETER	"/sys/module/rcutree/parameters/do_rcu_barrier"
#define CALLS_MAX	64

static int parameter = -1;

static void setup(struct series *series)
{
	const char *reason;

	parameter = open(PARAMETER, O_WRONLY | O_CLOEXEC);
	if (parameter >= 0) {
		series->method = "do_rcu_barrier";
		return;
	}
	series->method = "kprobe";
	deletion_open();
	reason = probes_open();
	if (reason)
		unsupported("no do_rcu_barrier parameter, and no kprobes: %s", reason);
	if (!probes_add(0, "rcu_barrier"))
		unsupported("no do_rcu_barrier parameter, and rcu_barrier cannot be probed");
}

/*
 * With no callback queued anywhere rcu_barrier() has nothing to wait for and returns in
 * microseconds, even while a grace period is stuck. Reaping a child queues one on this CPU in every
 * kernel, since a task is freed by call_rcu().
 */
static void queue_callback(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	if (child < 0 || waitpid(child, NULL, 0) != child)
		fail("cannot fork and reap a child");
}

static void operate_on_demand(struct series *series)
{
	struct sample sample = { 0 };

	queue_callback();
	series_begin();
	sample.start_ns = now_ns();
	if (pwrite(parameter, "1", 1, 0) != 1)
		fail("cannot write to " PARAMETER);
	sample.duration_ns = now_ns() - sample.start_ns;
	series_add(series, &sample);
}

static void operate_in_deletion(struct series *series)
{
	struct probe_call calls[CALLS_MAX];
	struct sample deletion;
	size_t count;

	deletion_run(&deletion);
	count = probes_read(calls, CALLS_MAX);
	for (size_t i = 0; i < count; i++)
		series_add(series, &(struct sample){ .start_ns = calls[i].start_ns,
						     .duration_ns = calls[i].duration_ns });
}

static void operate(struct series *series)
{
	if (parameter >= 0)
		operate_on_demand(series);
	else
		operate_in_deletion(series);
}

int main(int argc, char **argv)
{
	static const struct measurement measurement = {
		.name = "rcu_barrier",
		.purpose = "measure how long rcu_barrier() takes",
		/*
		 * The parameter acts once in HZ/16, 62.5 ms, from call to call and sleeps out the
		 * rest; so this pause is never part of a sample.
		 */
		.gap_ns = 200 * NSEC_PER_MSEC,
		.gap_min_ms = 100,
		.setup = setup,
		.operate = operate,
	};

	return measure_main(argc, argv, &measurement);
}
