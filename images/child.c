// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program between clone and exec.
 *
 * The child shares the agent's memory, as after vfork: a fork would copy page tables and then
 * fault page by page in both, a third of a short command's time under TCG. But the agent does not
 * wait for the exec: the child may be moved to a CPU that a load has taken for good and never get
 * there. So the two run side by side, and the child touches nothing but its struct child and
 * calls nothing of libc that keeps state (see raw.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "child.h"
#include "raw.h"
#include "wire.h"

#define STATUS_FD	(STDERR_FILENO + 1)

/* A path for exec and some calls deep. */
#define STACK_SIZE	(PATH_MAX + 12288)

/* What the kernel takes for a set of signals; libc's sigset_t is longer. */
#define KERNEL_SIGSET	8

struct child {
	struct plan plan;
	struct ends ends;
	cpu_set_t home_cpus;
	char stack[STACK_SIZE] __attribute__((aligned(16)));
	char block[];		/* CHILD_BLOCK bytes in the file modes */
};

void child_exit(int code)
{
	for (;;)
		raw(exit_group, code, 0, 0, 0);
}

void child_fail(int status, long error, const char *step)
{
	struct failure failure = { .error = -error };

	for (size_t i = 0; step[i] && i < sizeof(failure.step) - 1; i++)
		failure.step[i] = step[i];
	raw(write, status, &failure, sizeof(failure), 0);
	child_exit(127);
}

/* Put the ends where a program expects them and close all else. The agent's own are above 2. */
static void take_ends(const struct child *child)
{
	const struct ends *ends = &child->ends;
	bool pty = child->plan.flags & WIRE_FLAG_PTY;
	long in = ends->in;
	long error;

	if (in < 0)
		in = raw(openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 0);
	if (in < 0)
		child_fail(ends->status, in, "stdin");
	raw(dup3, in, STDIN_FILENO, 0, 0);
	raw(dup3, pty ? in : ends->out, STDOUT_FILENO, 0, 0);
	raw(dup3, pty ? in : ends->err, STDERR_FILENO, 0, 0);
	if (ends->status != STATUS_FD)
		raw(dup3, ends->status, STATUS_FD, O_CLOEXEC, 0);
	/*
	 * At once, not by close-on-exec alone: other programs' stdin pipes are among them, and
	 * would not end while this child waits for a CPU or copies a file.
	 */
	raw(close_range, STATUS_FD + 1, ~0U, 0, 0);
	error = pty ? raw(ioctl, STDIN_FILENO, TIOCSCTTY, 0, 0) : 0;
	if (error)
		child_fail(STATUS_FD, error, "pty");
}

/* The agent ignores no signal, it blocks some. */
static void unblock_signals(void)
{
	static const unsigned char none[KERNEL_SIGSET];

	raw(rt_sigprocmask, SIG_SETMASK, none, NULL, sizeof(none));
}

static void choose_cpus(const struct child *child)
{
	const struct plan *plan = &child->plan;
	cpu_set_t cpus;
	long error = -EINVAL;

	if (plan->cpu < 0) {
		/* The copying of a file stays with the agent, away from a load. */
		if (plan->mode == WIRE_MODE_EXEC)
			raw(sched_setaffinity, 0, sizeof(child->home_cpus), &child->home_cpus, 0);
		return;
	}
	if (plan->cpu < CPU_SETSIZE) {
		CPU_ZERO(&cpus);
		CPU_SET(plan->cpu, &cpus);
		error = raw(sched_setaffinity, 0, sizeof(cpus), &cpus, 0);
	}
	if (error < 0)
		child_fail(STATUS_FD, error, "cpu");
}

static const char *search_path(char **envp)
{
	for (; *envp; envp++) {
		if (!strncmp(*envp, "PATH=", 5))
			return *envp + 5;
	}
	return "/bin:/usr/bin";
}

/*
 * As subprocess does it: the PATH of the new environment counts, and an error that says more than
 * "not there" wins. Returns the error when nothing could be run.
 */
static long execute(char **argv, char **envp)
{
	const char *path = search_path(envp);
	size_t name_length = strlen(argv[0]);
	long error = -ENOENT;

	if (strchr(argv[0], '/'))
		return raw(execve, argv[0], argv, envp, 0);
	while (name_length && *path) {
		size_t length = strcspn(path, ":");
		char file[PATH_MAX];
		long result = -ENAMETOOLONG;

		if (length + 1 + name_length < sizeof(file)) {
			memcpy(file, path, length);
			file[length] = '/';
			memcpy(file + length + 1, argv[0], name_length + 1);
			result = raw(execve, file, argv, envp, 0);
		}
		if (result != -ENOENT && result != -ENOTDIR && error == -ENOENT)
			error = result;
		path += length;
		path += *path == ':';
	}
	return error;
}

static int run(void *argument)
{
	struct child *child = argument;
	const struct plan *plan = &child->plan;
	long error;

	raw(setsid, 0, 0, 0, 0);
	take_ends(child);
	unblock_signals();
	choose_cpus(child);
	error = raw(chdir, plan->cwd, 0, 0, 0);
	if (error)
		child_fail(STATUS_FD, error, "chdir");
	switch (plan->mode) {
	case WIRE_MODE_READ:
		child_read_file(STATUS_FD, plan->argv[0], child->block);
	case WIRE_MODE_WRITE:
		child_write_file(STATUS_FD, plan->argv[0], plan->file_mode, child->block);
	}
	child_fail(STATUS_FD, execute(plan->argv, plan->envp), "exec");
}

struct child *child_new(const struct plan *plan, const struct ends *ends,
			const cpu_set_t *home_cpus)
{
	size_t block = plan->mode == WIRE_MODE_EXEC ? 0 : CHILD_BLOCK;
	struct child *child = malloc(sizeof(*child) + block);

	if (!child)
		return NULL;
	child->plan = *plan;
	child->ends = *ends;
	child->home_cpus = *home_cpus;
	return child;
}

pid_t child_start(struct child *child)
{
	return clone(run, child->stack + sizeof(child->stack), CLONE_VM | SIGCHLD, child);
}

void child_free(struct child *child)
{
	plan_free(&child->plan);
	free(child);
}
