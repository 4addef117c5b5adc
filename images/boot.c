// SPDX-License-Identifier: GPL-2.0-only
/*
 * What PID 1 does before and after it serves: mounts, modules, the loopback device, power-off.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "boot.h"
#include "log.h"

#define MODULE_LIST	"/etc/modules"

/* How long an orderly power-off may take before the machine is reset instead. */
#define POWER_OFF_SECONDS	2

static const struct {
	const char *type;
	const char *target;
	const char *options;
	bool optional;	/* kernels may be built without it */
} mounts[] = {
	{ "devtmpfs", "/dev", "mode=0755", false },
	{ "proc", "/proc", NULL, false },
	{ "sysfs", "/sys", NULL, false },
	{ "devpts", "/dev/pts", "mode=0620,ptmxmode=0666", true },
	{ "tmpfs", "/tmp", "mode=1777", false },
	{ "tmpfs", "/run", "mode=0755", false },
	{ "debugfs", "/sys/kernel/debug", NULL, true },
	{ "tracefs", "/sys/kernel/tracing", NULL, true },
};

static const struct {
	const char *target;
	const char *link;
} links[] = {
	/* devtmpfs has none of these, and shell scripts take them for granted. */
	{ "/proc/self/fd", "/dev/fd" },
	{ "/proc/self/fd/0", "/dev/stdin" },
	{ "/proc/self/fd/1", "/dev/stdout" },
	{ "/proc/self/fd/2", "/dev/stderr" },
};

static void mount_all(void)
{
	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		mkdir(mounts[i].target, 0755);
		if (mount(mounts[i].type, mounts[i].target, mounts[i].type, 0,
			  mounts[i].options) && !mounts[i].optional)
			complain("cannot mount %s: %s", mounts[i].target, strerror(errno));
		/* Complaints need /dev, which is the first in the list. */
		if (i == 0)
			log_to_kernel();
	}
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
		if (symlink(links[i].target, links[i].link) && errno != EEXIST)
			complain("cannot make %s: %s", links[i].link, strerror(errno));
	}
}

/* The kernel opens /dev/console for init only if the image has one; devtmpfs has it always. */
static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR | O_NOCTTY);

	if (fd < 0) {
		complain("cannot open /dev/console: %s", strerror(errno));
		return;
	}
	for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; standard++)
		dup2(fd, standard);
	if (fd > STDERR_FILENO)
		close(fd);
}

static void load_module(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
		complain("cannot load %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* One absolute path a line, dependencies first. */
static void load_modules(void)
{
	FILE *list = fopen(MODULE_LIST, "re");
	char path[4096];

	if (!list)
		return;
	while (fgets(path, sizeof(path), list)) {
		path[strcspn(path, "\n")] = '\0';
		if (path[0] == '/')
			load_module(path);
	}
	fclose(list);
}

/* The kernel gives the loopback device its addresses as it comes up. */
static void raise_loopback(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		complain("cannot bring up lo: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

void boot(void)
{
	static const char hostname[] = "napi";

	umask(022);
	mount_all();
	open_console();
	setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", true);
	setenv("HOME", "/root", true);
	setenv("TERM", "linux", true);
	mkdir("/root", 0700);
	if (sethostname(hostname, strlen(hostname)))
		complain("cannot set the host name: %s", strerror(errno));
	load_modules();
	raise_loopback();
}

void power_off(void)
{
	int fd;

	/*
	 * The orderly way moves to CPU 0 and shuts devices down, which never ends if a load has
	 * taken that CPU for good. SysRq-b resets the machine from where it stands, and QEMU runs
	 * with -no-reboot.
	 */
	if (fork() == 0) {
		reboot(RB_POWER_OFF);
		_exit(1);
	}
	sleep(POWER_OFF_SECONDS);
	fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "b", 1) < 0)
		reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}
