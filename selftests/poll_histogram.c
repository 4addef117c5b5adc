// SPDX-License-Identifier: GPL-2.0-only
#include "poll_histogram.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "outcome.h"
#include "tracefs.h"

#define EVENT	"events/napi/napi_poll"
/* A work of 0 to 64, for as many NAPIs as a device has here; a power of two. */
#define SIZE	4096

static char instance[128];

static void remove_instance(void)
{
	rmdir(instance);
}

void poll_histogram_open(const char *device)
{
	const char *root = tracefs_root();
	char text[160];

	if (!root)
		unsupported("no tracefs (CONFIG_FTRACE)");
	/* An instance of its own: its triggers go with it, and nobody else's are in the way. */
	snprintf(instance, sizeof(instance), "%s/instances/nic_watch_%d", root, getpid());
	if (mkdir(instance, 0700))
		unsupported("no trace instance: %s", strerror(errno));
	atexit(remove_instance);
	snprintf(text, sizeof(text), "hist:keys=napi.hex,work:size=%d if dev_name==\"%s\"\n", SIZE,
		 device);
	if (tracefs_write(text, "%s/" EVENT "/trigger", instance))
		return;
	if (errno == ENOENT)
		unsupported("the kernel has no tracepoint napi_poll");
	unsupported("no histogram of napi_poll: %s (CONFIG_HIST_TRIGGERS?)", strerror(errno));
}

static struct napi_polls *of_napi(struct poll_counts *counts, uint64_t napi)
{
	struct napi_polls *row = counts->napis;

	while (row < counts->napis + counts->count && row->napi != napi)
		row++;
	if (row == counts->napis + POLL_NAPIS_MAX)
		return NULL;
	if (row == counts->napis + counts->count) {
		row->napi = napi;
		counts->count++;
	}
	return row;
}

void poll_histogram_read(struct poll_counts *counts)
{
	char path[sizeof(instance) + 32], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/" EVENT "/hist", instance);
	file = fopen(path, "re");
	if (!file)
		fail("cannot read %s", path);
	memset(counts, 0, sizeof(*counts));
	while (fgets(line, sizeof(line), file)) {
		uint64_t napi, hits;
		struct napi_polls *row;
		unsigned int work;

		if (sscanf(line, "{ napi: %" SCNx64 ", work: %u } hitcount: %" SCNu64, &napi,
			   &work, &hits) != 3)
			continue;
		row = of_napi(counts, napi);
		if (!row)
			continue;
		row->by_work[work < POLL_BUDGET ? work : POLL_BUDGET] += hits;
		row->work += hits * work;
	}
	fclose(file);
}
