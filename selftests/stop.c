// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "outcome.h"

static struct pollfd sources[2] = {
	{ .fd = -1, .events = POLLIN },		/* signals */
	{ .fd = -1, .events = POLLIN },		/* standard input */
};
static bool requested;

void stop_init(bool stdin_too)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &signals, NULL))
		fail("cannot block signals");
	sources[0].fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (sources[0].fd < 0)
		fail("signalfd");
	/* A reader that has gone must not keep us from cleaning up: see json_line(). */
	signal(SIGPIPE, SIG_IGN);
	if (stdin_too)
		sources[1].fd = STDIN_FILENO;
}

bool stop_wait(uint64_t time_ns)
{
	while (!requested) {
		uint64_t now = now_ns();
		uint64_t left = time_ns > now ? time_ns - now : 0;
		struct timespec timeout = {
			.tv_sec = (time_t)(left / NSEC_PER_SEC),
			.tv_nsec = (long)(left % NSEC_PER_SEC),
		};
		char drained[256];
		int ready = ppoll(sources, 2, &timeout, NULL);

		if (ready < 0 && errno != EINTR)
			fail("ppoll");
		if (ready > 0) {
			if (sources[0].revents)
				requested = true;
			/* What is written to us means nothing, only the end of it does. */
			if (sources[1].revents && read(STDIN_FILENO, drained, sizeof(drained)) <= 0)
				requested = true;
		} else if (!left) {
			break;
		}
	}
	return requested;
}

bool stop_requested(void)
{
	return stop_wait(0);
}

bool stop_wait_input(void)
{
	struct pollfd both[2] = { sources[0], { .fd = STDIN_FILENO, .events = POLLIN } };

	if (!requested && poll(both, 2, -1) < 0)
		fail("poll");
	return stop_requested();
}
