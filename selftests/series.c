// SPDX-License-Identifier: GPL-2.0-only
#include "series.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "ktap.h"
#include "outcome.h"

void series_start(const struct series *series)
{
	const char *absent = series->phases_absent;
	const char *quote = absent ? "\"" : "";
	char phases[128] = "";
	size_t used = 0;

	for (unsigned int i = 0; i < series->phase_count; i++)
		used += (size_t)snprintf(phases + used, sizeof(phases) - used, "%s\"%s\"",
					 i ? "," : "", series->phases[i]);
	if (outcome_json()) {
		json_line("{\"event\":\"start\",\"time_ns\":%" PRIu64 ",\"cpu\":%d,"
			  "\"method\":\"%s\",\"phases\":[%s],\"phases_absent\":%s%s%s}", now_ns(),
			  series->cpu, series->method, phases, quote, absent ? absent : "null", quote);
		return;
	}
	ktap_plan(1);
	ktap_note("cpu=%d method=%s", series->cpu, series->method);
	if (absent)
		ktap_note("phases: %s", absent);
}

void series_begin(void)
{
	if (outcome_json())
		json_line("{\"event\":\"begin\",\"time_ns\":%" PRIu64 "}", now_ns());
}

/* What no phase accounts for. The trace rounds to microseconds, hence not below zero. */
static uint64_t rest_ns(const struct series *series, const struct sample *sample)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < series->phase_count; i++)
		sum += sample->phase_ns[i];
	return sum < sample->duration_ns ? sample->duration_ns - sum : 0;
}

static void sample_print(const struct series *series, const struct sample *sample)
{
	char phases[256] = "";
	size_t used = 0;

	for (unsigned int i = 0; i < series->phase_count; i++)
		used += (size_t)snprintf(phases + used, sizeof(phases) - used,
					 "\"%s\":%" PRIu64 ",", series->phases[i],
					 sample->phase_ns[i]);
	if (series->phase_count)
		snprintf(phases + used, sizeof(phases) - used, "\"rest\":%" PRIu64,
			 rest_ns(series, sample));
	json_line("{\"event\":\"sample\",\"start_ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64
		  ",\"phases\":{%s}}", sample->start_ns, sample->duration_ns, phases);
}

void series_add(struct series *series, const struct sample *sample)
{
	struct sample *samples;

	if (outcome_json())
		sample_print(series, sample);
	samples = realloc(series->samples, (series->count + 1) * sizeof(*samples));
	if (!samples)
		fail("no memory for %zu samples", series->count + 1);
	samples[series->count++] = *sample;
	series->samples = samples;
}

static int by_value(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static double milliseconds(uint64_t ns)
{
	return (double)ns / (double)NSEC_PER_MSEC;
}

/* Print the figures of @count values and return their maximum; @values gets sorted. */
static uint64_t summarize(const char *title, uint64_t *values, size_t count)
{
	double sum = 0;

	qsort(values, count, sizeof(*values), by_value);
	for (size_t i = 0; i < count; i++)
		sum += milliseconds(values[i]);
	/* Nearest rank: the smallest value that 99 % of all do not exceed. */
	ktap_note("%s n=%zu mean=%.2fms p99=%.2fms max=%.2fms", title, count,
		  sum / (double)count, milliseconds(values[(count * 99 + 99) / 100 - 1]),
		  milliseconds(values[count - 1]));
	return values[count - 1];
}

static uint64_t summarize_all(const struct series *series)
{
	uint64_t *values = calloc(series->count, sizeof(*values));
	uint64_t max;

	if (!values)
		fail("no memory for the summary");
	for (unsigned int phase = 0; phase < series->phase_count; phase++) {
		for (size_t i = 0; i < series->count; i++)
			values[i] = series->samples[i].phase_ns[phase];
		summarize(series->phases[phase], values, series->count);
	}
	if (series->phase_count) {
		for (size_t i = 0; i < series->count; i++)
			values[i] = rest_ns(series, &series->samples[i]);
		summarize("rest", values, series->count);
	}
	for (size_t i = 0; i < series->count; i++)
		values[i] = series->samples[i].duration_ns;
	max = summarize(series->name, values, series->count);
	free(values);
	return max;
}

int series_end(const struct series *series)
{
	char name[64];
	bool passed = false;

	if (outcome_json()) {
		json_line("{\"event\":\"end\",\"time_ns\":%" PRIu64 ",\"samples\":%zu}", now_ns(),
			  series->count);
		return EXIT_PASSED;
	}
	if (series->count) {
		passed = summarize_all(series) <= series->bound_ns;
		ktap_note("bound=%.0fms", milliseconds(series->bound_ns));
	} else {
		ktap_note("stopped before the first sample");
	}
	snprintf(name, sizeof(name), "%s.max", series->name);
	ktap_result(passed, name);
	return ktap_failed() ? EXIT_FAILED : EXIT_PASSED;
}

void series_clear(struct series *series)
{
	free(series->samples);
	series->samples = NULL;
	series->count = 0;
}
