// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file modes of SPAWN, in a child of their own: a file that blocks does not block the agent.
 * The rules for a child hold, see child.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include "child.h"
#include "raw.h"

/* Write all of it, in one call unless the file takes less, as sysfs and procfs files need it. */
static long write_all(int fd, const char *bytes, size_t length)
{
	while (length) {
		long n = raw(write, fd, bytes, length, 0);

		if (n < 0)
			return n;
		bytes += n;
		length -= n;
	}
	return 0;
}

/* Fill the block from stdin as far as it goes. */
static long read_block(char *block)
{
	size_t length = 0;
	long n;

	do {
		n = raw(read, STDIN_FILENO, block + length, CHILD_BLOCK - length, 0);
		if (n < 0)
			return n;
		length += n;
	} while (n && length < CHILD_BLOCK);
	return length;
}

void child_read_file(int status, const char *path, char *block)
{
	long fd = raw(openat, AT_FDCWD, path, O_RDONLY, 0);
	long n, error;

	if (fd < 0)
		child_fail(status, fd, "open");
	while ((n = raw(read, fd, block, CHILD_BLOCK, 0)) > 0) {
		error = write_all(STDOUT_FILENO, block, n);
		if (error)
			child_fail(status, error, "pipe");
	}
	if (n < 0)
		child_fail(status, n, "read");
	child_exit(0);
}

/* O_CREAT in sysfs or procfs says EACCES of an attribute that is not there: ENOENT says more. */
static long open_to_write(const char *path, uint32_t mode)
{
	long fd = raw(openat, AT_FDCWD, path, O_WRONLY | O_TRUNC, 0);

	if (fd != -ENOENT)
		return fd;
	raw(umask, 0, 0, 0, 0);
	fd = raw(openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode & 07777);
	return fd == -EACCES ? -ENOENT : fd;
}

void child_write_file(int status, const char *path, uint32_t mode, char *block)
{
	long fd = open_to_write(path, mode);
	long n, error;

	if (fd < 0)
		child_fail(status, fd, "open");
	while ((n = read_block(block)) > 0) {
		error = write_all(fd, block, n);
		if (error)
			child_fail(status, error, "write");
	}
	if (n < 0)
		child_fail(status, n, "pipe");
	error = raw(close, fd, 0, 0, 0);
	if (error)
		child_fail(status, error, "write");
	child_exit(0);
}
