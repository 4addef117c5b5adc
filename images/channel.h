/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NAPI_CHANNEL_H
#define NAPI_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

struct channel {
	int fd;
	size_t window;		/* bytes the host may have underway; 0: no limit */
	size_t unacknowledged;	/* bytes read since the last RECEIVED */
	size_t out_limit;	/* no more output of programs is queued beyond this */

	unsigned char *out;
	size_t out_start;
	size_t out_end;
	size_t out_size;

	bool in_garbage;	/* complained about the present run of garbage */
	size_t in_used;
	unsigned char in[sizeof(struct wire_header) + WIRE_PAYLOAD_MAX];
};

/* The payload is gone after the call. */
typedef void (*frame_handler)(void *context, const struct wire_header *header,
			      const unsigned char *payload);

/* fd is nonblocking; tty says that it is a serial port. */
void channel_init(struct channel *channel, int fd, bool tty);

/* Another host has taken over: it has nothing underway. */
void channel_restart(struct channel *channel);

/*
 * Queue a frame in two steps: write up to length bytes of payload to where channel_reserve()
 * points, then commit as many as there are. Spares a copy of all output of programs.
 */
unsigned char *channel_reserve(struct channel *channel, size_t length);
void channel_commit(struct channel *channel, enum wire_kind kind, uint32_t id, size_t length);

/* Queue a frame. */
void channel_send(struct channel *channel, enum wire_kind kind, uint32_t id, const void *payload,
		  size_t length);
void channel_send_u32(struct channel *channel, enum wire_kind kind, uint32_t id, uint32_t value);

/* May output of programs be queued? Answers are small and always may. */
bool channel_has_room(const struct channel *channel);

/* May frames be read? Not while the host leaves too many answers unread. */
bool channel_may_receive(const struct channel *channel);

bool channel_has_output(const struct channel *channel);

/* Write what the port takes without blocking. False: the host is gone. */
bool channel_flush(struct channel *channel);

/* Read and hand on what has arrived, without blocking. False: the host is gone. */
bool channel_receive(struct channel *channel, frame_handler handle, void *context);

#endif
