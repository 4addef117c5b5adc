// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long does it take to delete a network device, and in which of its waits?
 *
 * A deletion waits for RCU grace periods (synchronize_net), for work items on every CPU (the
 * backlog flush: __flush_work) and for RCU callbacks (rcu_barrier). A CPU that NAPI never leaves
 * holds up all three; a fix that frees one of them only moves the delay to the next.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "deletion.h"
#include "measure.h"
#include "probe.h"

#define CALLS_MAX 256

/*
 * A function that a compiler has inlined cannot be probed there. unregister_netdevice_many_notify()
 * holds synchronize_net() inlined, which under RTNL is synchronize_rcu_expedited(); flush_work() is
 * a shell around __flush_work(). A call inside a call counts once.
 */
static const struct {
	const char *phase;
	const char *function;
	bool fallback;		/* only where the rows before gave this phase no probe */
} waits[] = {
	{ "synchronize_net", "synchronize_net", false },
	{ "synchronize_net", "synchronize_rcu_expedited", false },
	{ "synchronize_net", "synchronize_rcu", false },
	{ "flush_work", "__flush_work", false },
	{ "flush_work", "flush_work", true },
	{ "rcu_barrier", "rcu_barrier", false },
};

#define WAITS (sizeof(waits) / sizeof(*waits))

static_assert(WAITS <= PROBES_MAX, "more functions than probes");

static unsigned int phase_of[WAITS];	/* index into series.phases */

static void setup(struct series *series)
{
	deletion_open();
	series->method = "rtnl";
	series->phases_absent = probes_open();
	if (series->phases_absent)
		return;
	for (unsigned int i = 0; i < WAITS; i++) {
		unsigned int *count = &series->phase_count;
		bool known = *count && !strcmp(series->phases[*count - 1], waits[i].phase);

		if ((known && waits[i].fallback) || !probes_add(i, waits[i].function))
			continue;
		if (!known)
			series->phases[(*count)++] = waits[i].phase;
		phase_of[i] = *count - 1;
	}
	if (series->phase_count < PHASES_MAX)
		series->phases_absent = "the functions of some cannot be probed in this kernel";
}

static void operate(struct series *series)
{
	struct probe_call calls[CALLS_MAX];
	struct sample sample = { 0 };
	size_t count = 0;

	deletion_run(&sample);
	if (series->phase_count)
		count = probes_read(calls, CALLS_MAX);
	for (size_t i = 0; i < count; i++)
		if (calls[i].start_ns + NSEC_PER_USEC >= sample.start_ns)
			sample.phase_ns[phase_of[calls[i].function]] += calls[i].duration_ns;
	series_add(series, &sample);
}

int main(int argc, char **argv)
{
	static const struct measurement measurement = {
		.name = "netdev_deletion",
		.purpose = "measure how long deleting a network device takes",
		.gap_ns = 20 * NSEC_PER_MSEC,
		.setup = setup,
		.operate = operate,
	};

	return measure_main(argc, argv, &measurement);
}
