// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keep a threaded NAPI busy in the way that breaks kernels: each poll completes below its budget
 * and finds new work at once, so the kthread is re-entered without ever sleeping. A flood does not
 * do it: polls that use up their budget are repolled, and that path yields the CPU.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "clock.h"
#include "cpu.h"
#include "ktap.h"
#include "options.h"
#include "outcome.h"
#include "reentry_load.h"
#include "stop.h"

/*
 * Re-entries a second: tens of thousands show the fault. An emulated CPU manages this many on any
 * host, so that the load is the same on each, and before and after a change.
 */
#define RATE		20000

#define TICK_NS		(100 * NSEC_PER_MSEC)
/* Frames in flight at the end are dropped in microseconds; a busy host may need longer. */
#define SETTLE_NS	(10 * NSEC_PER_MSEC)

static void print_ready(const struct reentry_load *load, int cpu, int frames, int rate,
			uint64_t deadline_ns)
{
	const struct napi_kthread *kthread = &load->kthread;

	if (outcome_json()) {
		json_line("{\"event\":\"ready\",\"time_ns\":%" PRIu64 ",\"device\":\"%s\","
			  "\"napi_id\":%u,\"pid\":%d,\"comm\":\"%s\",\"cpu\":%d,"
			  "\"frames\":%d,\"rate\":%d,\"deadline_ns\":%" PRIu64 "}", now_ns(),
			  load->device, kthread->napi_id, kthread->pid, kthread->comm, cpu, frames,
			  rate, deadline_ns);
		return;
	}
	ktap_plan(4);
	ktap_note("ready device=%s kthread=%s pid=%d cpu=%d frames=%d rate=%d", load->device,
		  kthread->comm, kthread->pid, cpu, frames, rate);
}

/* @head opens the JSON object. */
static void print_counters(const char *head, const struct reentry_counters *counters)
{
	json_line("{%s,\"time_ns\":%" PRIu64 ",\"polls\":%" PRIu64 ",\"reentries\":%" PRIu64
		  ",\"work\":%" PRIu64 ",\"runtime_ns\":%" PRIu64 ",\"voluntary\":%" PRIu64
		  ",\"nonvoluntary\":%" PRIu64 ",\"cpu\":%d}", head, counters->time_ns,
		  counters->polls, counters->reentries, counters->work,
		  counters->kthread.runtime_ns, counters->kthread.voluntary,
		  counters->kthread.nonvoluntary, counters->kthread.cpu);
}

static void note_change(const struct reentry_counters *from, const struct reentry_counters *to)
{
	double seconds = (double)(to->time_ns - from->time_ns) / (double)NSEC_PER_SEC;
	double runtime = (double)(to->kthread.runtime_ns - from->kthread.runtime_ns);

	ktap_note("%.1fs: polls/s=%.0f reentries/s=%.0f work/poll=%.1f runtime=%.0f%% "
		  "voluntary=+%" PRIu64 " nonvoluntary=+%" PRIu64, seconds,
		  (double)(to->polls - from->polls) / seconds,
		  (double)(to->reentries - from->reentries) / seconds,
		  (double)(to->work - from->work) / (double)(to->polls - from->polls + !to->polls),
		  100 * runtime / (double)NSEC_PER_SEC / seconds,
		  to->kthread.voluntary - from->kthread.voluntary,
		  to->kthread.nonvoluntary - from->kthread.nonvoluntary);
}

/* Until the deadline, or a request to stop: returns true for the latter. */
static bool watch(const struct reentry_load *load, uint64_t deadline_ns,
		  struct reentry_counters *last)
{
	struct reentry_counters noted = *last;
	uint64_t tick_ns = last->time_ns + TICK_NS;

	while (tick_ns < deadline_ns) {
		if (stop_wait(tick_ns))
			return true;
		reentry_load_read(load, last);
		if (outcome_json()) {
			print_counters("\"event\":\"tick\"", last);
		} else if (last->time_ns - noted.time_ns > NSEC_PER_SEC - TICK_NS / 2) {
			note_change(&noted, last);
			noted = *last;
		}
		/* Held up for longer than a tick: the ticks missed are gone. */
		do {
			tick_ns += TICK_NS;
		} while (tick_ns <= last->time_ns);
	}
	return stop_wait(deadline_ns);
}

/*
 * Does the load stand still, with nobody's help? The host's own traffic on the pair, such as a
 * router solicitation, makes a poll now and then; the load makes thousands in this time.
 */
static bool is_over(const struct reentry_load *load)
{
	struct reentry_counters before, after;

	reentry_load_read(load, &before);
	stop_wait(now_ns() + TICK_NS);
	reentry_load_read(load, &after);
	return after.polls - before.polls < 10;
}

static int print_results(const struct reentry_load *load, int cpu, bool stopped,
			 const struct reentry_counters *first, const struct reentry_counters *last)
{
	uint64_t polls = last->polls - first->polls;
	uint64_t reentries = last->reentries - first->reentries;

	note_change(first, last);
	ktap_result(cpu_is_pinned(load->kthread.pid, cpu) && last->kthread.cpu == cpu,
		    "kthread_pinned");
	/* Above this share the odd poll of another kind does not interrupt the load. */
	ktap_result(reentries && reentries * 100 >= polls * 99, "polls_below_budget");
	/* It sleeps before the first frame, and between polls only where the load does not work. */
	ktap_result(polls && last->kthread.voluntary - first->kthread.voluntary <= polls / 1000,
		    "kthread_never_sleeps");
	if (stopped)
		ktap_skip("ends_by_itself", "stopped before its deadline");
	else
		ktap_result(is_over(load), "ends_by_itself");
	return ktap_failed() ? EXIT_FAILED : EXIT_PASSED;
}

static int run(struct reentry_load *load, int cpu, int frames, int rate, uint64_t seconds_ns)
{
	uint64_t deadline_ns = now_ns() + seconds_ns;
	struct reentry_counters first, last, end;
	uint64_t end_ns = deadline_ns;
	bool stopped;

	reentry_load_read(load, &first);
	reentry_load_start(load, frames, deadline_ns);
	print_ready(load, cpu, frames, rate, deadline_ns);
	last = first;
	stopped = watch(load, deadline_ns, &last);
	if (stopped) {
		reentry_load_stop(load);
		end_ns = now_ns();
	}
	clock_sleep(SETTLE_NS);
	reentry_load_read(load, &end);
	/* The load ended then, however late this process came to see it. */
	end.time_ns = end_ns;
	if (outcome_json()) {
		print_counters(stopped ? "\"event\":\"end\",\"reason\":\"stopped\"" :
					 "\"event\":\"end\",\"reason\":\"deadline\"", &end);
		return EXIT_PASSED;
	}
	return print_results(load, cpu, stopped, &first, &last);
}

int main(int argc, char **argv)
{
	struct reentry_load load = { 0 };
	uint64_t seconds_ns = 5 * NSEC_PER_SEC;
	int cpu = 0, frames = 8, rate = RATE;
	bool json = false, stdin_stop = false;
	const struct option_row rows[] = {
		{ "json", OPTION_FLAG, &json, 0, 0, "print JSON lines instead of KTAP" },
		{ "cpu", OPTION_NUMBER, &cpu, 0, INT_MAX, "load this CPU (0)" },
		{ "frames", OPTION_NUMBER, &frames, 1, 63, "frames in flight (8)" },
		{ "rate", OPTION_NUMBER, &rate, 0, 1000000,
		  "re-entries a second, 0: as many as the CPU manages (20000)" },
		{ "seconds", OPTION_SECONDS, &seconds_ns, 0.1, 86400, "for how long (5)" },
		{ "stdin-stop", OPTION_FLAG, &stdin_stop, 0, 0, "stop when standard input ends" },
		{ 0 },
	};

	options_parse(argc, argv, "keep a threaded NAPI busy, re-entered on every poll", rows);
	outcome_mode(json);
	if (!cpu_usable(cpu))
		options_reject("--cpu: CPU %d is not online or not in our cpuset", cpu);
	if (frames > REENTRY_FRAMES_MAX)
		fprintf(stderr, "napi_reentry: over %d frames hide the fault: redirects are flushed "
			"inside the poll, which uses up its budget and yields\n",
			REENTRY_FRAMES_MAX);
	require_root();
	stop_init(stdin_stop);
	cpu_avoid(cpu);
	reentry_load_open(&load, cpu, rate);
	return run(&load, cpu, frames, rate, seconds_ns);
}
