// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "measure.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "cpu.h"
#include "ktap.h"
#include "options.h"
#include "outcome.h"
#include "stop.h"

#define START_ARGUMENTS 16

static void require_usable(int cpu)
{
	if (!cpu_usable(cpu))
		options_reject("--cpu: CPU %d is not online or not in our cpuset", cpu);
}

/*
 * Say that the probes are armed, then wait for the word to begin: a line of further options. So the
 * probes come before the load; under it arming them may get stuck. Returns false when the input
 * ends instead.
 */
static bool wait_for_start(char *program, const struct option_row *rows)
{
	char *arguments[START_ARGUMENTS + 1] = { program };
	char line[256] = "", *rest = line, *word;
	int count = 1;

	if (outcome_json())
		json_line("{\"event\":\"armed\",\"time_ns\":%" PRIu64 "}", now_ns());
	else
		ktap_note("armed");
	if (stop_wait_input() || !fgets(line, sizeof(line), stdin))
		return false;
	while (count < START_ARGUMENTS && (word = strsep(&rest, " \n")))
		if (*word)
			arguments[count++] = word;
	options_parse(count, arguments, "", rows);
	return true;
}

int measure_main(int argc, char **argv, const struct measurement *measurement)
{
	struct series series = {
		.name = measurement->name,
		.cpu = cpu_last(),
		/* Below the fault's tail, far above any healthy kernel's: a deletion over 1 s. */
		.bound_ns = NSEC_PER_SEC,
	};
	uint64_t seconds_ns = 5 * NSEC_PER_SEC, gap_ns = measurement->gap_ns, end_ns;
	int count = INT_MAX, done;
	bool json = false, stdin_start = false;
	const struct option_row rows[] = {
		{ "json", OPTION_FLAG, &json, 0, 0, "print JSON lines instead of KTAP" },
		{ "cpu", OPTION_NUMBER, &series.cpu, 0, INT_MAX, "measure on this CPU (the last)" },
		{ "seconds", OPTION_SECONDS, &seconds_ns, 0.1, 86400, "for how long (5)" },
		{ "count", OPTION_NUMBER, &count, 1, INT_MAX, "at most this many times (any)" },
		{ "gap-ms", OPTION_MILLISECONDS, &gap_ns, measurement->gap_min_ms, 60000,
		  "pause between two times" },
		{ "bound-ms", OPTION_MILLISECONDS, &series.bound_ns, 0, 3600000,
		  "KTAP: fail above this (1000)" },
		{ "stdin-start", OPTION_FLAG, &stdin_start, 0, 0,
		  "arm the probes, then wait for a line on standard input: more options; "
		  "with --json measure again at each line" },
		{ 0 },
	};
	int status = EXIT_PASSED;

	options_parse(argc, argv, measurement->purpose, rows);
	outcome_mode(json);
	require_usable(series.cpu);
	require_root();
	stop_init(false);
	measurement->setup(&series);
	do {
		if (stdin_start && !wait_for_start(argv[0], rows)) {
			if (!json)
				unsupported("called off before the start");
			break;
		}
		require_usable(series.cpu);
		cpu_pin(0, series.cpu);

		series_start(&series);
		end_ns = now_ns() + seconds_ns;
		for (done = 0; done < count && !stop_requested() && now_ns() < end_ns; done++) {
			measurement->operate(&series);
			stop_wait(now_ns() + gap_ns);
		}
		status = series_end(&series);
		series_clear(&series);
	} while (json && stdin_start);
	return status;
}
