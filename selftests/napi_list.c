// SPDX-License-Identifier: GPL-2.0-only
/* List NAPIs with their interrupts and kthreads, and queues with what they received. */
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "genl.h"
#include "ktap.h"
#include "options.h"
#include "outcome.h"

/* include/uapi/linux/netdev.h of Linux 6.12: older headers lack them. */
enum {
	QUEUE_GET = 10,		/* 6.8 */
	NAPI_GET = 11,		/* 6.8 */
	QSTATS_GET = 12,	/* 6.10 */
};
enum {
	NAPI_IFINDEX = 1, NAPI_ID, NAPI_IRQ, NAPI_PID,
};
enum {
	QUEUE_ID = 1, QUEUE_IFINDEX, QUEUE_TYPE, QUEUE_NAPI_ID,
};
enum {
	QSTATS_IFINDEX = 1, QSTATS_TYPE, QSTATS_ID, QSTATS_SCOPE, QSTATS_RX_PACKETS = 8,
	QSTATS_TX_PACKETS = 10,
};
#define QSTATS_SCOPE_QUEUE	1
#define TYPE_RX			0

static const char *name_of(const struct nlattr *ifindex)
{
	static char name[IF_NAMESIZE];

	return if_indextoname((unsigned int)genl_number(ifindex), name) ? name : "?";
}

/* null in JSON is what the kernel does not tell. */
static const char *number(const struct nlattr *attribute)
{
	static char texts[4][24];
	static unsigned int next;
	char *text = texts[next++ % 4];

	if (attribute)
		snprintf(text, sizeof(texts[0]), "%" PRId64, genl_number(attribute));
	else
		strcpy(text, "null");
	return text;
}

static const char *type_of(const struct nlattr *type)
{
	return genl_number(type) == TYPE_RX ? "rx" : "tx";
}

static void print_napi(genl_object napi)
{
	if (outcome_json())
		json_line("{\"event\":\"napi\",\"device\":\"%s\",\"id\":%s,\"irq\":%s,\"pid\":%s}",
			  name_of(napi[NAPI_IFINDEX]), number(napi[NAPI_ID]),
			  number(napi[NAPI_IRQ]), number(napi[NAPI_PID]));
	else
		ktap_note("napi %s of %s: irq %s, kthread %s", number(napi[NAPI_ID]),
			  name_of(napi[NAPI_IFINDEX]), number(napi[NAPI_IRQ]),
			  number(napi[NAPI_PID]));
}

static void print_queue(genl_object queue)
{
	if (outcome_json())
		json_line("{\"event\":\"queue\",\"device\":\"%s\",\"type\":\"%s\",\"id\":%s,"
			  "\"napi_id\":%s}", name_of(queue[QUEUE_IFINDEX]),
			  type_of(queue[QUEUE_TYPE]), number(queue[QUEUE_ID]),
			  number(queue[QUEUE_NAPI_ID]));
	else
		ktap_note("%s queue %s of %s: napi %s", type_of(queue[QUEUE_TYPE]),
			  number(queue[QUEUE_ID]), name_of(queue[QUEUE_IFINDEX]),
			  number(queue[QUEUE_NAPI_ID]));
}

static void print_statistics(genl_object queue)
{
	bool rx = genl_number(queue[QSTATS_TYPE]) == TYPE_RX;
	const char *packets = number(queue[rx ? QSTATS_RX_PACKETS : QSTATS_TX_PACKETS]);

	if (outcome_json())
		json_line("{\"event\":\"statistics\",\"device\":\"%s\",\"type\":\"%s\",\"id\":%s,"
			  "\"packets\":%s}", name_of(queue[QSTATS_IFINDEX]),
			  type_of(queue[QSTATS_TYPE]), number(queue[QSTATS_ID]), packets);
	else
		ktap_note("%s queue %s of %s: %s packets", type_of(queue[QSTATS_TYPE]),
			  number(queue[QSTATS_ID]), name_of(queue[QSTATS_IFINDEX]), packets);
}

/* What only newer kernels or some drivers tell is left out. */
static void dump_optional(uint8_t command, const struct genl_u32 attributes[2],
			  void (*take)(genl_object object))
{
	if (genl_dump(command, attributes, take) && errno != EOPNOTSUPP && errno != ENODEV)
		fail("cannot list the queues");
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	bool json = false;
	uint32_t ifindex = 0;
	const struct option_row rows[] = {
		{ "json", OPTION_FLAG, &json, 0, 0, "print JSON lines instead of KTAP" },
		{ "device", OPTION_TEXT, &device, 0, 0, "this device only" },
		{ 0 },
	};

	options_parse(argc, argv, "list NAPIs and queues as the kernel tells of them", rows);
	outcome_mode(json);
	if (device) {
		ifindex = if_nametoindex(device);
		if (!ifindex)
			options_reject("--device: there is no %s", device);
	}
	if (genl_open("netdev")) {
		if (errno == ENOENT)
			unsupported("the kernel has no netlink family netdev (before 6.3)");
		fail("cannot ask for the netlink family netdev");
	}

	const struct genl_u32 napis[2] = { { ifindex ? NAPI_IFINDEX : 0, ifindex } };
	const struct genl_u32 queues[2] = { { ifindex ? QUEUE_IFINDEX : 0, ifindex } };
	const struct genl_u32 statistics[2] = {
		{ QSTATS_SCOPE, QSTATS_SCOPE_QUEUE },
		{ ifindex ? QSTATS_IFINDEX : 0, ifindex },
	};

	if (!json)
		ktap_plan(1);
	if (genl_dump(NAPI_GET, napis, print_napi)) {
		if (errno == EOPNOTSUPP && json)
			unsupported("the kernel does not list NAPIs (before 6.8)");
		if (errno != EOPNOTSUPP)
			fail("cannot list the NAPIs");
		ktap_skip("napis_are_listed", "the kernel does not list NAPIs (before 6.8)");
		return EXIT_SKIPPED;
	}
	dump_optional(QUEUE_GET, queues, print_queue);
	dump_optional(QSTATS_GET, statistics, print_statistics);
	if (json)
		json_line("{\"event\":\"end\"}");
	else
		ktap_result(true, "napis_are_listed");
	return EXIT_PASSED;
}
