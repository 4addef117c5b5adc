// SPDX-License-Identifier: GPL-2.0-only
#include "genl.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "outcome.h"

struct request {
	struct nlmsghdr header;
	struct genlmsghdr genl;
	char attributes[64];
};

static int genl_socket = -1;
static uint16_t family_id;

static void put(struct request *request, uint16_t number, const void *data, size_t size)
{
	struct nlattr *attribute;

	attribute = (void *)((char *)request + NLMSG_ALIGN(request->header.nlmsg_len));
	attribute->nla_type = number;
	attribute->nla_len = (uint16_t)(NLA_HDRLEN + size);
	memcpy((char *)attribute + NLA_HDRLEN, data, size);
	request->header.nlmsg_len = NLMSG_ALIGN(request->header.nlmsg_len) +
				    (uint32_t)NLA_ALIGN(attribute->nla_len);
}

static struct request start(uint16_t type, uint16_t flags, uint8_t command)
{
	return (struct request){
		.header = {
			.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN),
			.nlmsg_type = type,
			.nlmsg_flags = NLM_F_REQUEST | flags,
		},
		.genl = { .cmd = command, .version = 1 },
	};
}

static void index_attributes(const struct nlmsghdr *message, genl_object object)
{
	const char *at = (const char *)NLMSG_DATA(message) + GENL_HDRLEN;
	const char *end = (const char *)message + message->nlmsg_len;

	memset(object, 0, sizeof(genl_object));
	while (at + NLA_HDRLEN <= end) {
		const struct nlattr *attribute = (const void *)at;
		unsigned int number = attribute->nla_type & NLA_TYPE_MASK;

		if (attribute->nla_len < NLA_HDRLEN || at + attribute->nla_len > end)
			break;
		if (number < GENL_ATTRIBUTES)
			object[number] = attribute;
		at += NLA_ALIGN(attribute->nla_len);
	}
}

/*
 * Takes one answer, or a whole dump: up to NLMSG_DONE, as the netdev family sends its dumps without
 * NLM_F_MULTI.
 */
static int receive(int dump, void (*take)(genl_object object))
{
	static union {
		struct nlmsghdr header;
		char bytes[65536];
	} reply;

	for (;;) {
		ssize_t length = recv(genl_socket, &reply, sizeof(reply), 0);
		const struct nlmsghdr *message = &reply.header;

		if (length < 0)
			return -1;
		for (; NLMSG_OK(message, (size_t)length); message = NLMSG_NEXT(message, length)) {
			genl_object object;

			if (message->nlmsg_type == NLMSG_DONE)
				return 0;
			if (message->nlmsg_type == NLMSG_ERROR) {
				errno = -((const struct nlmsgerr *)NLMSG_DATA(message))->error;
				return errno ? -1 : 0;
			}
			index_attributes(message, object);
			take(object);
			if (!dump)
				return 0;
		}
	}
}

static void take_family(genl_object object)
{
	const struct nlattr *id = object[CTRL_ATTR_FAMILY_ID];

	if (id)
		memcpy(&family_id, (const char *)id + NLA_HDRLEN, sizeof(family_id));
}

int genl_open(const char *family)
{
	struct request request = start(GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY);

	genl_socket = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (genl_socket < 0)
		fail("cannot open generic netlink");
	put(&request, CTRL_ATTR_FAMILY_NAME, family, strlen(family) + 1);
	if (send(genl_socket, &request, request.header.nlmsg_len, 0) < 0)
		return -1;
	return receive(0, take_family);
}

int genl_dump(uint8_t command, const struct genl_u32 attributes[2],
	      void (*take)(genl_object object))
{
	struct request request = start(family_id, NLM_F_DUMP, command);

	for (int i = 0; i < 2; i++)
		if (attributes[i].number)
			put(&request, attributes[i].number, &attributes[i].value,
			    sizeof(attributes[i].value));
	if (send(genl_socket, &request, request.header.nlmsg_len, 0) < 0)
		return -1;
	return receive(1, take);
}

int64_t genl_number(const struct nlattr *attribute)
{
	uint64_t value = 0;
	size_t size;

	if (!attribute)
		return -1;
	size = attribute->nla_len - (size_t)NLA_HDRLEN;
	/* Little-endian or not, a 32-bit value must not land in the upper half. */
	if (size == sizeof(uint32_t)) {
		uint32_t narrow;

		memcpy(&narrow, (const char *)attribute + NLA_HDRLEN, sizeof(narrow));
		return narrow;
	}
	if (size == sizeof(value))
		memcpy(&value, (const char *)attribute + NLA_HDRLEN, sizeof(value));
	return (int64_t)value;
}
