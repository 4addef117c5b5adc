// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program's stdin, stdout and stderr.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "log.h"
#include "process.h"

#define OUTPUT_FRAME	32768

/* Control-D, unless the program has changed it with stty. */
#define END_OF_FILE	"\4"

static void credit(struct process *process, size_t length)
{
	channel_send_u32(process->channel, WIRE_CONSUMED, process->id, length);
}

/* The program has closed its stdin: throw away what it has not read. */
static void end_input(struct process *process)
{
	if (process->in_used)
		credit(process, process->in_used);
	process->in_used = 0;
	close(process->in_fd);
	process->in_fd = -1;
}

void process_pump_input(struct process *process)
{
	while (process->in_used) {
		ssize_t n = write(process->in_fd, process->in + process->in_start,
				  process->in_used);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			end_input(process);
			return;
		}
		process->in_start += n;
		process->in_used -= n;
		credit(process, n);
	}
	process->in_start = 0;
	if (!process->in_ended || process->in_fd < 0)
		return;
	if (!process->pty) {
		end_input(process);
		return;
	}
	/* A terminal stays open; a reader in canonical mode takes this character for the end. */
	process->in_ended = false;
	if (write(process->in_fd, END_OF_FILE, 1) < 0)
		end_input(process);
}

void process_input(struct process *process, const unsigned char *bytes, size_t length)
{
	if (!length) {
		process->in_ended = true;
		process_pump_input(process);
		return;
	}
	if (process->in_fd < 0) {
		credit(process, length);
		return;
	}
	if (!process->in)
		process->in = malloc(WIRE_STDIN_CREDIT);
	if (!process->in)
		die("out of memory");
	if (length > WIRE_STDIN_CREDIT - process->in_used) {
		complain("more stdin than there is credit for: dropped %zu bytes", length);
		return;
	}
	if (length > WIRE_STDIN_CREDIT - process->in_start - process->in_used) {
		memmove(process->in, process->in + process->in_start, process->in_used);
		process->in_start = 0;
	}
	memcpy(process->in + process->in_start + process->in_used, bytes, length);
	process->in_used += length;
	process_pump_input(process);
}

static void end_output(struct process *process, struct stream *stream)
{
	close(stream->fd);
	stream->fd = -1;
	channel_send(process->channel, stream->kind, process->id, NULL, 0);
}

bool process_pump_output(struct process *process, struct stream *stream)
{
	unsigned char *room;
	ssize_t n;

	if (stream->fd < 0 || stream->held || !channel_has_room(process->channel))
		return false;
	room = channel_reserve(process->channel, OUTPUT_FRAME);
	n = read(stream->fd, room, OUTPUT_FRAME);
	if (n > 0) {
		channel_commit(process->channel, stream->kind, process->id, n);
		return true;
	}
	/* A terminal reports EIO when the last program has closed it. */
	if (n == 0 || errno != EAGAIN)
		end_output(process, stream);
	return false;
}

void process_close(struct process *process, uint32_t mask)
{
	for (int i = 0; i < PROCESS_STREAMS; i++) {
		if ((mask & (1u << i)) && process->streams[i].fd >= 0)
			end_output(process, &process->streams[i]);
	}
	/* With both of its descriptors closed a terminal hangs up. */
	if (process->pty && process->streams[0].fd < 0 && process->in_fd >= 0)
		end_input(process);
}

void process_hold(struct process *process, uint32_t mask, bool held)
{
	for (int i = 0; i < PROCESS_STREAMS; i++) {
		if (mask & (1u << i))
			process->streams[i].held = held;
	}
}

void process_resize(struct process *process, uint16_t rows, uint16_t cols)
{
	struct winsize size = { .ws_row = rows, .ws_col = cols };

	if (process->pty && process->in_fd >= 0 && ioctl(process->in_fd, TIOCSWINSZ, &size))
		complain("cannot resize a terminal: %s", strerror(errno));
}
