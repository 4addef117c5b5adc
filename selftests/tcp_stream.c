// SPDX-License-Identifier: GPL-2.0-only
/*
 * A TCP stream: sent with --connect, else received and thrown away. The receiver's device sees what
 * it sees under a bulk transfer: large frames, merged by GRO, at the rate the connection finds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "ktap.h"
#include "options.h"
#include "outcome.h"
#include "stop.h"

#define CHUNK		(128 * 1024)
/* How long a stop, or the end of the time, may go unnoticed. */
#define WAIT_MS		50

static char buffer[CHUNK];

static int open_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fail("cannot open a TCP socket");
	return fd;
}

static bool is_over(uint64_t end_ns)
{
	return stop_requested() || now_ns() >= end_ns;
}

static int accept_one(int port, uint64_t end_ns)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_ANY),
	};
	int listener = open_socket(), one = 1;
	struct pollfd waiting = { .fd = listener, .events = POLLIN };

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 1))
		fail("cannot listen on port %d", port);
	if (outcome_json())
		json_line("{\"event\":\"ready\",\"time_ns\":%" PRIu64 "}", now_ns());
	while (!is_over(end_ns))
		if (poll(&waiting, 1, WAIT_MS) == 1)
			return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	return -1;
}

static int connect_to(const char *host, int port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
	};
	int fd = open_socket();

	if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
		options_reject("--connect: no IPv4 address: '%s'", host);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		fail("cannot connect to %s port %d", host, port);
	if (outcome_json())
		json_line("{\"event\":\"ready\",\"time_ns\":%" PRIu64 "}", now_ns());
	return fd;
}

/* Returns the bytes moved, until the other end closes, it is time, or a stop is asked for. */
static uint64_t move(int fd, bool sending, uint64_t end_ns)
{
	struct pollfd ready = { .fd = fd, .events = sending ? POLLOUT : POLLIN };
	uint64_t bytes = 0;

	while (!is_over(end_ns)) {
		ssize_t moved;

		if (poll(&ready, 1, WAIT_MS) != 1)
			continue;
		/* MSG_TRUNC: thrown away without being copied (tcp(7)). */
		moved = sending ? send(fd, buffer, CHUNK, MSG_DONTWAIT | MSG_NOSIGNAL) :
				  recv(fd, buffer, CHUNK, MSG_DONTWAIT | MSG_TRUNC);
		if (moved == 0 || (moved < 0 && (errno == EPIPE || errno == ECONNRESET)))
			break;
		if (moved < 0 && errno != EAGAIN)
			fail(sending ? "cannot send" : "cannot receive");
		bytes += moved > 0 ? (uint64_t)moved : 0;
	}
	return bytes;
}

int main(int argc, char **argv)
{
	uint64_t seconds_ns = 5 * NSEC_PER_SEC, end_ns, start_ns, bytes = 0;
	bool json = false, stdin_stop = false;
	const char *host = NULL;
	int port = 0, fd;
	const struct option_row rows[] = {
		{ "json", OPTION_FLAG, &json, 0, 0, "print JSON lines instead of KTAP" },
		{ "connect", OPTION_TEXT, &host, 0, 0, "send to this IPv4 address" },
		{ "port", OPTION_NUMBER, &port, 1, 65535, "the receiver's port" },
		{ "seconds", OPTION_SECONDS, &seconds_ns, 0.1, 86400, "for how long (5)" },
		{ "stdin-stop", OPTION_FLAG, &stdin_stop, 0, 0, "stop when standard input ends" },
		{ 0 },
	};

	options_parse(argc, argv, "send or receive a TCP stream", rows);
	outcome_mode(json);
	if (!port)
		unsupported("no port to receive on or to send to: --port");
	stop_init(stdin_stop);
	end_ns = now_ns() + seconds_ns;
	if (!json)
		ktap_plan(1);
	fd = host ? connect_to(host, port) : accept_one(port, end_ns);
	start_ns = now_ns();
	if (fd >= 0)
		bytes = move(fd, host, end_ns);
	if (json) {
		json_line("{\"event\":\"end\",\"bytes\":%" PRIu64 ",\"duration_ns\":%" PRIu64 "}",
			  bytes, now_ns() - start_ns);
		return EXIT_PASSED;
	}
	ktap_note("%.1f Mbit/s", 8e3 * (double)bytes / (double)(now_ns() - start_ns));
	ktap_result(bytes > 0, "bytes_were_moved");
	return ktap_failed() ? EXIT_FAILED : EXIT_PASSED;
}
