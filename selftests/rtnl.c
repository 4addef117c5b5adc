// SPDX-License-Identifier: GPL-2.0-only
#include "rtnl.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "outcome.h"

struct request {
	struct nlmsghdr header;
	struct ifinfomsg link;
	char attributes[512];	/* the largest request, a veth pair, takes 136 bytes */
};

static int rtnl_socket = -1;

void rtnl_open(void)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	rtnl_socket = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (rtnl_socket < 0 || connect(rtnl_socket, (struct sockaddr *)&kernel, sizeof(kernel)))
		fail("cannot open rtnetlink");
}

static struct request request_init(uint16_t type, uint16_t flags)
{
	return (struct request){
		.header = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
			.nlmsg_type = type,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags,
		},
		.link = { .ifi_family = AF_UNSPEC },
	};
}

static struct rtattr *put(struct request *request, uint16_t type, const void *data, size_t size)
{
	struct rtattr *attribute;

	attribute = (void *)((char *)request + NLMSG_ALIGN(request->header.nlmsg_len));
	attribute->rta_type = type;
	attribute->rta_len = (unsigned short)RTA_LENGTH(size);
	if (size)
		memcpy(RTA_DATA(attribute), data, size);
	request->header.nlmsg_len = (uint32_t)((char *)attribute - (char *)request +
					       RTA_ALIGN(RTA_LENGTH(size)));
	return attribute;
}

static void put_name(struct request *request, uint16_t type, const char *name)
{
	put(request, type, name, strlen(name) + 1);
}

static void nest_end(struct request *request, struct rtattr *nest)
{
	char *end = (char *)request + request->header.nlmsg_len;

	nest->rta_len = (unsigned short)(end - (char *)nest);
}

static int request_send(struct request *request)
{
	static uint32_t sequence;
	union {
		struct nlmsghdr header;
		char bytes[4096];
	} reply;
	ssize_t length;

	request->header.nlmsg_seq = ++sequence;
	if (send(rtnl_socket, request, request->header.nlmsg_len, 0) < 0)
		return -errno;
	do {
		length = recv(rtnl_socket, &reply, sizeof(reply), 0);
	} while ((length < 0 && errno == EINTR) ||
		 (length >= (ssize_t)sizeof(reply.header) && reply.header.nlmsg_seq != sequence));
	if (length < 0)
		return -errno;
	if (length < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)) ||
	    reply.header.nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return ((struct nlmsgerr *)NLMSG_DATA(&reply.header))->error;
}

int rtnl_add_dummy(const char *name)
{
	struct request request = request_init(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	struct rtattr *info;

	put_name(&request, IFLA_IFNAME, name);
	info = put(&request, IFLA_LINKINFO, NULL, 0);
	put_name(&request, IFLA_INFO_KIND, "dummy");
	nest_end(&request, info);
	return request_send(&request);
}

static void put_one_queue(struct request *request)
{
	const uint32_t one = 1;

	put(request, IFLA_NUM_TX_QUEUES, &one, sizeof(one));
	put(request, IFLA_NUM_RX_QUEUES, &one, sizeof(one));
}

int rtnl_add_veth(const char *name, const char *peer)
{
	struct request request = request_init(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	struct rtattr *info, *data, *other;

	put_name(&request, IFLA_IFNAME, name);
	put_one_queue(&request);
	info = put(&request, IFLA_LINKINFO, NULL, 0);
	put_name(&request, IFLA_INFO_KIND, "veth");
	data = put(&request, IFLA_INFO_DATA, NULL, 0);
	/* The peer's attributes follow a link header of its own. */
	other = put(&request, VETH_INFO_PEER, &(struct ifinfomsg){ 0 }, sizeof(struct ifinfomsg));
	put_name(&request, IFLA_IFNAME, peer);
	put_one_queue(&request);
	nest_end(&request, other);
	nest_end(&request, data);
	nest_end(&request, info);
	return request_send(&request);
}

int rtnl_set_up(const char *name)
{
	struct request request = request_init(RTM_NEWLINK, 0);

	request.link.ifi_flags = IFF_UP;
	request.link.ifi_change = IFF_UP;
	put_name(&request, IFLA_IFNAME, name);
	return request_send(&request);
}

int rtnl_delete(const char *name)
{
	struct request request = request_init(RTM_DELLINK, 0);

	put_name(&request, IFLA_IFNAME, name);
	return request_send(&request);
}
