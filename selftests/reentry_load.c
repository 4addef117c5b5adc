// SPDX-License-Identifier: GPL-2.0-only
#include "reentry_load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bpf.h"
#include "clock.h"
#include "cpu.h"
#include "outcome.h"
#include "reentry_programs.h"
#include "rtnl.h"

static const char *pair_to_delete;

static void delete_pair(void)
{
	rtnl_delete(pair_to_delete);
}

/* A pair of names that no device here has, and no NAPI kthread of a device in another namespace. */
static void create_pair(struct reentry_load *load)
{
	int error = -EEXIST;

	for (int i = 0; i < 100 && error == -EEXIST; i += 2) {
		snprintf(load->peer, sizeof(load->peer), "nr%d", i);
		snprintf(load->device, sizeof(load->device), "nr%d", i + 1);
		if (kthread_find(load->device, &load->kthread))
			error = rtnl_add_veth(load->peer, load->device);
	}
	if (error == -EOPNOTSUPP)
		unsupported("no veth devices: CONFIG_VETH is off or its module is not loaded");
	errno = -error;
	if (error)
		fail("cannot create the veth pair %s/%s", load->peer, load->device);
	pair_to_delete = load->peer;
	atexit(delete_pair);
}

static int index_of(const char *device)
{
	unsigned int index = if_nametoindex(device);

	if (!index)
		fail("cannot find %s", device);
	return (int)index;
}

static void set_up(const char *device)
{
	int error = rtnl_set_up(device);

	errno = -error;
	if (error)
		fail("cannot set %s up", device);
}

static void set_threaded(const char *device)
{
	char path[64], state = '?';
	int fd;

	snprintf(path, sizeof(path), "/sys/class/net/%s/threaded", device);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		unsupported("no threaded NAPI: no %s (before 5.12, or no sysfs)", path);
	if (fd < 0 || write(fd, "1", 1) != 1 || pread(fd, &state, 1, 0) != 1)
		fail("cannot make the NAPI of %s threaded", device);
	close(fd);
	if (state != '1')
		unsupported("the NAPI of %s does not stay threaded", device);
}

void reentry_load_open(struct reentry_load *load, int cpu, int rate)
{
	int map, index;

	rtnl_open();
	create_pair(load);
	load->peer_index = index_of(load->peer);
	index = index_of(load->device);

	map = bpf_shared_map(sizeof(*load->shared), (void **)&load->shared);
	/* veth has a NAPI only with an XDP program attached (or GRO on), and while it is up. */
	bpf_attach_xdp(reentry_load_redirect(map, load->peer_index), index);
	bpf_attach_raw_tracepoint(reentry_load_counter(map), "napi_poll");
	set_up(load->peer);
	set_up(load->device);

	set_threaded(load->device);
	errno = ESRCH;
	if (kthread_find(load->device, &load->kthread))
		fail("cannot find the NAPI kthread of %s", load->device);
	cpu_pin(load->kthread.pid, cpu);
	load->shared->period_ns = rate ? NSEC_PER_SEC / (uint64_t)rate : 0;
	load->shared->pid = (uint32_t)load->kthread.pid;
}

void reentry_load_start(struct reentry_load *load, int frames, uint64_t deadline_ns)
{
	const struct {
		struct ethhdr header;
		char payload[ETH_ZLEN - ETH_HLEN];
	} frame = {
		.header = {
			.h_dest = "\xff\xff\xff\xff\xff\xff",
			.h_source = "\x02",	/* locally administered */
			.h_proto = htons(REENTRY_ETHERTYPE),
		},
	};
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_ifindex = load->peer_index };
	int sender = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (sender < 0 && errno == EAFNOSUPPORT)
		unsupported("no packet sockets: CONFIG_PACKET is off");
	if (sender < 0 || bind(sender, (struct sockaddr *)&address, sizeof(address)))
		fail("cannot open a packet socket on %s", load->peer);
	load->shared->deadline_ns = deadline_ns;
	for (int i = 0; i < frames; i++)
		if (send(sender, &frame, sizeof(frame), 0) != sizeof(frame))
			fail("cannot send on %s", load->peer);
	/* The socket stays open until exit: closing it waits for a grace period. */
}

void reentry_load_stop(struct reentry_load *load)
{
	__atomic_store_n(&load->shared->deadline_ns, 0, __ATOMIC_SEQ_CST);
}

static uint64_t counter(const uint64_t *value)
{
	return __atomic_load_n(value, __ATOMIC_RELAXED);
}

void reentry_load_read(const struct reentry_load *load, struct reentry_counters *counters)
{
	counters->time_ns = now_ns();
	counters->polls = counter(&load->shared->polls);
	counters->reentries = counter(&load->shared->reentries);
	counters->work = counter(&load->shared->work);
	kthread_read_stat(load->kthread.pid, &counters->kthread);
}
