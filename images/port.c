// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finding and opening the port to the host.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "port.h"

#define PORT_CLASS	"/sys/class/virtio-ports"
#define PORT_NAME	"napi.agent"
#define PARAMETER	"napi.channel="

/* The driver adds ports in a work item, after it has asked the device about each. */
#define PORT_WAIT_MS	5000

static void sleep_ms(long ms)
{
	struct timespec pause = { .tv_nsec = ms * 1000000 };

	nanosleep(&pause, NULL);
}

/* Read a short file as one string without the newline at its end; "" when it cannot be read. */
static void read_line(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;

	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

/* Find the device name of our port, "vport0p1". */
static bool find_virtio(char *device, size_t size)
{
	DIR *ports = opendir(PORT_CLASS);
	struct dirent *entry;
	bool found = false;

	if (!ports)
		return false;
	while (!found && (entry = readdir(ports))) {
		char path[sizeof(PORT_CLASS) + sizeof(entry->d_name) + sizeof("/name")];
		char name[64];

		snprintf(path, sizeof(path), PORT_CLASS "/%s/name", entry->d_name);
		read_line(path, name, sizeof(name));
		found = !strcmp(name, PORT_NAME);
		if (found)
			snprintf(device, size, "/dev/%s", entry->d_name);
	}
	closedir(ports);
	return found;
}

static int open_virtio(void)
{
	struct pollfd port = { .events = POLLOUT };
	char device[300];
	int waited_ms;

	for (waited_ms = 0; !find_virtio(device, sizeof(device)); waited_ms++) {
		if (waited_ms == PORT_WAIT_MS) {
			complain("no virtio port " PORT_NAME " after %d s", PORT_WAIT_MS / 1000);
			return -1;
		}
		sleep_ms(1);
	}
	port.fd = open(device, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (port.fd < 0) {
		complain("cannot open %s: %s", device, strerror(errno));
		return -1;
	}
	/*
	 * The device says that the host is connected after it has told the name. Until then poll()
	 * reports a hang-up, which later means that the host has died.
	 */
	while (poll(&port, 1, 0) > 0 && (port.revents & POLLHUP))
		sleep_ms(1);
	return port.fd;
}

static int open_tty(const char *name)
{
	struct termios termios;
	char device[64];
	int fd;

	snprintf(device, sizeof(device), "/dev/%s", name);
	fd = open(device, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || tcgetattr(fd, &termios)) {
		complain("cannot open %s: %s", device, strerror(errno));
		return -1;
	}
	cfmakeraw(&termios);
	cfsetspeed(&termios, B115200);
	termios.c_cflag |= CLOCAL | CREAD;
	termios.c_cflag &= ~CRTSCTS;
	/* Not 0: read() would return 0 for "nothing yet", which is the end of file elsewhere. */
	termios.c_cc[VMIN] = 1;
	termios.c_cc[VTIME] = 0;
	if (tcsetattr(fd, TCSANOW, &termios)) {
		complain("cannot make %s raw: %s", device, strerror(errno));
		return -1;
	}
	return fd;
}

int port_open(bool *tty)
{
	char line[4096];
	char *save;

	*tty = false;
	read_line("/proc/cmdline", line, sizeof(line));
	for (char *word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (strncmp(word, PARAMETER, strlen(PARAMETER)))
			continue;
		*tty = true;
		return open_tty(word + strlen(PARAMETER));
	}
	return open_virtio();
}
