// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watch what NAPI does for one device while somebody else loads it: how many polls, how much work
 * each did, and how long its kthreads kept their CPU.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "kthread.h"
#include "ktap.h"
#include "options.h"
#include "outcome.h"
#include "poll_histogram.h"
#include "stop.h"

#define KTHREADS_MAX	32
/* What the tracepoint calls the device of a CPU's backlog. */
#define BACKLOG		"(no_device)"
#define TICK_NS		(100 * NSEC_PER_MSEC)
/* The resolution of the longest time without a switch. */
#define SAMPLE_NS	(20 * NSEC_PER_MSEC)

struct watched_kthread {
	struct kthread_stat first;
	struct kthread_stat last;
	uint64_t sampled_ns;	/* its CPU time at the last sample */
	uint64_t switches;	/* both kinds, when last read */
	uint64_t since_ns;	/* when it was first seen with these */
	uint64_t longest_ns;	/* longest stretch on its CPU without a switch */
};

static struct napi_kthread kthreads[KTHREADS_MAX];
static struct watched_kthread watched[KTHREADS_MAX];
static int kthread_count;
static const char *device;

static uint64_t statistic(const char *name)
{
	char path[128];
	uint64_t value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/%s", device, name);
	file = fopen(path, "re");
	if (file) {
		if (fscanf(file, "%" SCNu64, &value) != 1)
			value = 0;
		fclose(file);
	}
	return value;
}

static uint64_t total(const struct napi_polls *row, int from, int to)
{
	uint64_t polls = 0;

	for (int work = from; work <= to; work++)
		polls += row->by_work[work];
	return polls;
}

static void find_kthreads(uint64_t now)
{
	kthread_count = kthread_find_all(strcmp(device, BACKLOG) ? device : NULL, kthreads,
					 KTHREADS_MAX);
	for (int i = 0; i < kthread_count; i++) {
		struct watched_kthread *it = &watched[i];

		kthread_read_stat(kthreads[i].pid, &it->first);
		it->last = it->first;
		it->sampled_ns = it->first.runtime_ns;
		it->switches = it->first.voluntary + it->first.nonvoluntary;
		it->since_ns = now;
	}
}

/* One that was off its CPU for half of the time has been switched; reading how often takes long. */
static void sample(uint64_t now, uint64_t elapsed)
{
	for (int i = 0; i < kthread_count; i++) {
		struct watched_kthread *it = &watched[i];
		uint64_t runtime = kthread_runtime_ns(kthreads[i].pid);
		uint64_t switches;

		if (runtime - it->sampled_ns < elapsed / 2) {
			it->since_ns = now;
		} else {
			kthread_read_stat(kthreads[i].pid, &it->last);
			switches = it->last.voluntary + it->last.nonvoluntary;
			if (switches != it->switches)
				it->since_ns = now;
			else if (now - it->since_ns > it->longest_ns)
				it->longest_ns = now - it->since_ns;
			it->switches = switches;
		}
		it->sampled_ns = runtime;
	}
}

struct totals {
	uint64_t polls, reentries, work, full, empty;
	uint64_t runtime_ns, voluntary, nonvoluntary, longest_ns;
	int cpu;
};

static void sum_up(struct totals *sum, const struct poll_counts *counts)
{
	uint64_t most = 0;

	*sum = (struct totals){ .cpu = -1 };
	for (int i = 0; i < counts->count; i++) {
		const struct napi_polls *row = &counts->napis[i];

		sum->polls += total(row, 0, POLL_BUDGET);
		sum->reentries += total(row, 1, POLL_BUDGET - 1);
		sum->full += row->by_work[POLL_BUDGET];
		sum->empty += row->by_work[0];
		sum->work += row->work;
	}
	for (int i = 0; i < kthread_count; i++) {
		struct watched_kthread *it = &watched[i];
		uint64_t runtime;

		kthread_read_stat(kthreads[i].pid, &it->last);
		runtime = it->last.runtime_ns - it->first.runtime_ns;
		sum->runtime_ns += runtime;
		sum->voluntary += it->last.voluntary - it->first.voluntary;
		sum->nonvoluntary += it->last.nonvoluntary - it->first.nonvoluntary;
		if (it->longest_ns > sum->longest_ns)
			sum->longest_ns = it->longest_ns;
		if (runtime >= most) {
			most = runtime;
			sum->cpu = it->last.cpu;
		}
	}
}

/* Appends to @text, which is large enough for KTHREADS_MAX rows and POLL_NAPIS_MAX. */
static int print_napis(char *text, const struct poll_counts *counts)
{
	int length = 0;

	for (int i = 0; i < counts->count; i++) {
		const struct napi_polls *row = &counts->napis[i];

		length += sprintf(text + length, "%s{\"napi\":\"%" PRIx64 "\",\"polls\":%" PRIu64
				  ",\"reentries\":%" PRIu64 ",\"work\":%" PRIu64 ",\"full\":%"
				  PRIu64 "}", i ? "," : "", row->napi,
				  total(row, 0, POLL_BUDGET), total(row, 1, POLL_BUDGET - 1),
				  row->work, row->by_work[POLL_BUDGET]);
	}
	text[length] = '\0';
	return length;
}

static void print_kthreads(char *text)
{
	int length = 0;

	for (int i = 0; i < kthread_count; i++) {
		const struct watched_kthread *it = &watched[i];

		length += sprintf(text + length, "%s{\"pid\":%d,\"comm\":\"%s\",\"napi_id\":%u,"
				  "\"runtime_ns\":%" PRIu64 ",\"voluntary\":%" PRIu64
				  ",\"nonvoluntary\":%" PRIu64 ",\"cpu\":%d,\"longest_ns\":%"
				  PRIu64 "}", i ? "," : "", kthreads[i].pid, kthreads[i].comm,
				  kthreads[i].napi_id, it->last.runtime_ns - it->first.runtime_ns,
				  it->last.voluntary - it->first.voluntary,
				  it->last.nonvoluntary - it->first.nonvoluntary, it->last.cpu,
				  it->longest_ns);
	}
	text[length] = '\0';
}

static void print_counts(const char *head, const struct poll_counts *counts)
{
	static char napis[POLL_NAPIS_MAX * 160], threads[KTHREADS_MAX * 256];
	struct totals sum;

	sum_up(&sum, counts);
	if (!outcome_json()) {
		ktap_note("polls=%" PRIu64 " below_budget=%" PRIu64 " work=%" PRIu64 " slept=%"
			  PRIu64 " preempted=%" PRIu64 " longest=%.0fms", sum.polls, sum.reentries,
			  sum.work, sum.voluntary, sum.nonvoluntary,
			  (double)sum.longest_ns / (double)NSEC_PER_MSEC);
		return;
	}
	print_napis(napis, counts);
	print_kthreads(threads);
	json_line("{%s,\"time_ns\":%" PRIu64 ",\"polls\":%" PRIu64 ",\"reentries\":%" PRIu64
		  ",\"work\":%" PRIu64 ",\"full\":%" PRIu64 ",\"empty\":%" PRIu64
		  ",\"runtime_ns\":%" PRIu64 ",\"voluntary\":%" PRIu64 ",\"nonvoluntary\":%" PRIu64
		  ",\"cpu\":%d,\"longest_ns\":%" PRIu64 ",\"rx_packets\":%" PRIu64
		  ",\"rx_dropped\":%" PRIu64 ",\"rx_missed\":%" PRIu64 ",\"rx_errors\":%" PRIu64
		  ",\"napis\":[%s],\"kthreads\":[%s]}", head, now_ns(), sum.polls, sum.reentries,
		  sum.work, sum.full, sum.empty, sum.runtime_ns, sum.voluntary, sum.nonvoluntary,
		  sum.cpu, sum.longest_ns, statistic("rx_packets"), statistic("rx_dropped"),
		  statistic("rx_missed_errors"), statistic("rx_errors"), napis, threads);
}

static void print_histogram(const struct poll_counts *counts)
{
	for (int i = 0; outcome_json() && i < counts->count; i++) {
		static char text[(POLL_BUDGET + 1) * 32];
		const struct napi_polls *row = &counts->napis[i];
		int length = 0;

		for (int work = 0; work <= POLL_BUDGET; work++)
			if (row->by_work[work])
				length += sprintf(text + length, "%s[%d,%" PRIu64 "]",
						  length ? "," : "", work, row->by_work[work]);
		text[length] = '\0';
		json_line("{\"event\":\"histogram\",\"napi\":\"%" PRIx64 "\",\"work\":[%s]}",
			  row->napi, text);
	}
}

int main(int argc, char **argv)
{
	static struct poll_counts counts;
	uint64_t seconds_ns = 5 * NSEC_PER_SEC, end_ns, now, tick_ns, before;
	bool json = false, stdin_stop = false;
	const struct option_row rows[] = {
		{ "json", OPTION_FLAG, &json, 0, 0, "print JSON lines instead of KTAP" },
		{ "device", OPTION_TEXT, &device, 0, 0, "the device to watch" },
		{ "seconds", OPTION_SECONDS, &seconds_ns, 0.1, 86400, "for how long (5)" },
		{ "stdin-stop", OPTION_FLAG, &stdin_stop, 0, 0, "stop when standard input ends" },
		{ 0 },
	};

	options_parse(argc, argv, "watch the polls of a device's NAPIs", rows);
	outcome_mode(json);
	if (!device)
		unsupported("no device to watch: --device");
	if (strlen(device) > 15 || strpbrk(device, "\"/\\ "))
		options_reject("--device: no name of a device: '%s'", device);
	require_root();
	stop_init(stdin_stop);
	poll_histogram_open(device);
	before = now = now_ns();
	find_kthreads(now);
	end_ns = now + seconds_ns;
	tick_ns = now + TICK_NS;
	if (json)
		json_line("{\"event\":\"ready\",\"time_ns\":%" PRIu64 "}", now);
	else
		ktap_plan(1);
	poll_histogram_read(&counts);
	print_counts("\"event\":\"tick\"", &counts);
	while (now < end_ns && !stop_wait(now + SAMPLE_NS)) {
		before = now;
		now = now_ns();
		sample(now, now - before);
		if (now < tick_ns)
			continue;
		tick_ns = now + TICK_NS;
		poll_histogram_read(&counts);
		print_counts("\"event\":\"tick\"", &counts);
	}
	poll_histogram_read(&counts);
	print_histogram(&counts);
	print_counts(stop_requested() ? "\"event\":\"end\",\"reason\":\"stopped\"" :
					"\"event\":\"end\",\"reason\":\"deadline\"", &counts);
	if (json)
		return EXIT_PASSED;
	ktap_result(counts.count > 0, "device_was_polled");
	return ktap_failed() ? EXIT_FAILED : EXIT_PASSED;
}
