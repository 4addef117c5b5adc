// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's PID 1: boots the guest, then serves the host's commands (wire.h) until the host is
 * gone, then powers the machine off: no guest outlives its owner. A serial port does not tell that
 * the host is gone; there it is left to whoever started QEMU.
 *
 * "init --fd N" serves on a connected socket as an ordinary program of an ordinary user, for tests
 * and development on any machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "boot.h"
#include "log.h"
#include "port.h"

/* Pipes to programs must not end up below 3: children put theirs there. */
static void fill_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static int serve_socket(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC)) {
		complain("cannot serve on descriptor %d: %s", fd, strerror(errno));
		return 1;
	}
	fill_standard_fds();
	agent_serve(fd, false, false);
	return 0;
}

int main(int argc, char **argv)
{
	bool tty;
	int fd;

	if (argc == 3 && !strcmp(argv[1], "--fd"))
		return serve_socket(atoi(argv[2]));
	if (getpid() != 1) {
		complain("not PID 1: give --fd N, a connected socket to serve on");
		return 2;
	}
	boot();
	fd = port_open(&tty);
	if (fd >= 0)
		agent_serve(fd, tty, true);
	power_off();
}
