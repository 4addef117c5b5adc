// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames over the port, in and out, never blocking.
 *
 * All frames of one turn of the event loop leave in one write(): each write to a virtio port costs
 * an exit to QEMU and an interrupt.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "log.h"

/* Enough to keep QEMU busy, and few enough that an answer is not late behind it. */
#define OUT_LIMIT	(256 * 1024)
#define OUT_LIMIT_TTY	(16 * 1024)

/* Reached only if the host sends and does not read. */
#define OUT_CEILING	(4 * 1024 * 1024)

/* One read of a virtio port returns a page at most, of a tty one byte less. */
#define READ_FULL	4095
#define READS_PER_TURN	16

void channel_init(struct channel *channel, int fd, bool tty)
{
	memset(channel, 0, sizeof(*channel));
	channel->fd = fd;
	channel->window = tty ? WIRE_TTY_WINDOW : 0;
	channel->out_limit = tty ? OUT_LIMIT_TTY : OUT_LIMIT;
}

void channel_restart(struct channel *channel)
{
	channel->unacknowledged = 0;
}

static size_t pending(const struct channel *channel)
{
	return channel->out_end - channel->out_start;
}

bool channel_has_room(const struct channel *channel)
{
	return pending(channel) < channel->out_limit;
}

bool channel_may_receive(const struct channel *channel)
{
	return pending(channel) < OUT_CEILING;
}

bool channel_has_output(const struct channel *channel)
{
	return pending(channel) > 0;
}

unsigned char *channel_reserve(struct channel *channel, size_t length)
{
	size_t needed = sizeof(struct wire_header) + length;

	if (channel->out_size - channel->out_end < needed && channel->out_start) {
		memmove(channel->out, channel->out + channel->out_start, pending(channel));
		channel->out_end -= channel->out_start;
		channel->out_start = 0;
	}
	if (channel->out_size - channel->out_end < needed) {
		channel->out_size = 2 * (channel->out_end + needed);
		channel->out = realloc(channel->out, channel->out_size);
		if (!channel->out)
			die("out of memory");
	}
	return channel->out + channel->out_end + sizeof(struct wire_header);
}

void channel_commit(struct channel *channel, enum wire_kind kind, uint32_t id, size_t length)
{
	struct wire_header header = {
		.magic = htole32(WIRE_MAGIC),
		.length = htole32(length),
		.id = htole32(id),
		.kind = htole16(kind),
	};

	memcpy(channel->out + channel->out_end, &header, sizeof(header));
	channel->out_end += sizeof(header) + length;
}

void channel_send(struct channel *channel, enum wire_kind kind, uint32_t id, const void *payload,
		  size_t length)
{
	unsigned char *room = channel_reserve(channel, length);

	if (length)
		memcpy(room, payload, length);
	channel_commit(channel, kind, id, length);
}

void channel_send_u32(struct channel *channel, enum wire_kind kind, uint32_t id, uint32_t value)
{
	value = htole32(value);
	channel_send(channel, kind, id, &value, sizeof(value));
}

bool channel_flush(struct channel *channel)
{
	while (pending(channel)) {
		ssize_t n = write(channel->fd, channel->out + channel->out_start,
				  pending(channel));

		/* A virtio port returns 0 when its queue was full after all. */
		if (n == 0 || (n < 0 && errno == EAGAIN))
			return true;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		channel->out_start += n;
	}
	channel->out_start = 0;
	channel->out_end = 0;
	return true;
}

static bool valid(const struct wire_header *header)
{
	return header->magic == WIRE_MAGIC && header->length <= WIRE_PAYLOAD_MAX &&
	       header->reserved == 0;
}

static void decode(struct wire_header *header, const unsigned char *bytes)
{
	memcpy(header, bytes, sizeof(*header));
	header->magic = le32toh(header->magic);
	header->length = le32toh(header->length);
	header->id = le32toh(header->id);
	header->kind = le16toh(header->kind);
	header->reserved = le16toh(header->reserved);
}

/* How many of the length bytes cannot be the beginning of a header. The first is known not to. */
static size_t garbage(const unsigned char *bytes, size_t length)
{
	const uint32_t magic = htole32(WIRE_MAGIC);
	size_t n;

	for (n = 1; n < length; n++) {
		size_t seen = length - n < sizeof(magic) ? length - n : sizeof(magic);

		if (!memcmp(bytes + n, &magic, seen))
			break;
	}
	return n;
}

static void parse(struct channel *channel, frame_handler handle, void *context)
{
	struct wire_header header;
	size_t at = 0;

	while (channel->in_used - at >= sizeof(header)) {
		decode(&header, channel->in + at);
		if (!valid(&header)) {
			if (!channel->in_garbage)
				complain("garbage on the channel, looking for the next frame");
			channel->in_garbage = true;
			at += garbage(channel->in + at, channel->in_used - at);
			continue;
		}
		channel->in_garbage = false;
		if (channel->in_used - at < sizeof(header) + header.length)
			break;
		handle(context, &header, channel->in + at + sizeof(header));
		at += sizeof(header) + header.length;
	}
	channel->in_used -= at;
	memmove(channel->in, channel->in + at, channel->in_used);
}

static void acknowledge(struct channel *channel, size_t length)
{
	if (!channel->window)
		return;
	channel->unacknowledged += length;
	if (channel->unacknowledged < channel->window / 4)
		return;
	channel_send_u32(channel, WIRE_RECEIVED, 0, channel->unacknowledged);
	channel->unacknowledged = 0;
}

bool channel_receive(struct channel *channel, frame_handler handle, void *context)
{
	for (int turn = 0; turn < READS_PER_TURN; turn++) {
		/* Never zero: parse() leaves less than one whole frame. */
		size_t room = sizeof(channel->in) - channel->in_used;
		ssize_t n = read(channel->fd, channel->in + channel->in_used, room);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (n <= 0)
			return false;
		channel->in_used += n;
		acknowledge(channel, n);
		parse(channel, handle, context);
		if (n < READ_FULL)
			return true;
	}
	return true;
}
