// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a program: pipes, start, status, timeout, end.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"
#include "log.h"
#include "process.h"

#define NEVER		INT64_MAX

/* A killed program that lives longer hangs in the kernel. */
#define STUCK_NS	(2000 * NS_PER_MS)

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_ends(struct ends *ends)
{
	int error = errno;

	close_end(&ends->in);
	close_end(&ends->out);
	close_end(&ends->err);
	close_end(&ends->status);
	errno = error;
}

/* Open a pipe of which the agent's side never blocks. */
static int open_pipe(int *reader, int *writer, int *ours)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -1;
	*reader = fds[0];
	*writer = fds[1];
	return fcntl(*ours, F_SETFL, O_NONBLOCK);
}

static int open_pty(const struct plan *plan, struct ends *ours, struct ends *theirs)
{
	struct winsize size = { .ws_row = plan->rows, .ws_col = plan->cols };
	int unlock = 0;

	ours->in = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (ours->in < 0 || ioctl(ours->in, TIOCSPTLCK, &unlock))
		return -1;
	theirs->in = ioctl(ours->in, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (theirs->in < 0 || ioctl(theirs->in, TIOCSWINSZ, &size))
		return -1;
	ours->out = fcntl(ours->in, F_DUPFD_CLOEXEC, 0);
	return ours->out < 0 ? -1 : 0;
}

static int open_ends(const struct plan *plan, struct ends *ours, struct ends *theirs)
{
	if (open_pipe(&ours->status, &theirs->status, &ours->status))
		return -1;
	if (plan->flags & WIRE_FLAG_PTY)
		return open_pty(plan, ours, theirs);
	if (!(plan->flags & WIRE_FLAG_NO_STDIN) &&
	    open_pipe(&theirs->in, &ours->in, &ours->in))
		return -1;
	if (open_pipe(&ours->out, &theirs->out, &ours->out))
		return -1;
	return open_pipe(&ours->err, &theirs->err, &ours->err);
}

void process_send_failed(struct channel *channel, uint32_t id, int error, const char *step)
{
	const uint32_t wire_error = htole32(error);
	size_t length = strlen(step);
	unsigned char *payload = channel_reserve(channel, sizeof(wire_error) + length);

	memcpy(payload, &wire_error, sizeof(wire_error));
	memcpy(payload + sizeof(wire_error), step, length);
	channel_commit(channel, WIRE_FAILED, id, sizeof(wire_error) + length);
}

static void send_started(struct process *process)
{
	process->started = true;
	channel_send_u32(process->channel, WIRE_STARTED, process->id, process->pid);
}

struct process *process_start(struct channel *channel, uint32_t id, struct plan *plan,
			      const cpu_set_t *home_cpus)
{
	struct ends ours = { -1, -1, -1, -1 };
	struct ends theirs = { -1, -1, -1, -1 };
	struct process *process = calloc(1, sizeof(*process));
	const char *step = "pipe";

	if (!process || open_ends(plan, &ours, &theirs))
		goto failed;
	step = "fork";
	process->child = child_new(plan, &theirs, home_cpus);
	if (!process->child)
		goto failed;
	process->start_ns = now_ns();
	process->pid = child_start(process->child);
	if (process->pid < 0)
		goto failed;
	close_ends(&theirs);

	process->channel = channel;
	process->id = id;
	process->pty = plan->flags & WIRE_FLAG_PTY;
	process->timeout_ns = NEVER;
	if (plan->timeout_ms)
		process->timeout_ns = process->start_ns + plan->timeout_ms * NS_PER_MS;
	process->stuck_ns = NEVER;
	process->status_fd = ours.status;
	process->in_fd = ours.in;
	process->streams[0] = (struct stream){ .fd = ours.out, .kind = WIRE_STDOUT };
	process->streams[1] = (struct stream){ .fd = ours.err, .kind = WIRE_STDERR };
	/* No exec will close the status pipe: it serves until the file is copied. */
	if (plan->mode != WIRE_MODE_EXEC)
		send_started(process);
	return process;

failed:
	process_send_failed(channel, id, errno, step);
	close_ends(&ours);
	close_ends(&theirs);
	if (process && process->child)
		child_free(process->child);
	else
		plan_free(plan);
	free(process);
	return NULL;
}

static void close_all(struct process *process)
{
	close_end(&process->status_fd);
	close_end(&process->in_fd);
	for (int i = 0; i < PROCESS_STREAMS; i++)
		close_end(&process->streams[i].fd);
}

void process_read_status(struct process *process)
{
	struct failure failure;
	ssize_t n;

	if (process->status_fd < 0)
		return;
	n = read(process->status_fd, &failure, sizeof(failure));
	if (n < 0)
		return;
	close_end(&process->status_fd);
	if (n == sizeof(failure)) {
		process_send_failed(process->channel, process->id, failure.error, failure.step);
		process->failed = true;
		close_all(process);
	} else if (!process->started) {
		send_started(process);
	}
}

void process_reap(struct process *process, int wait_status)
{
	struct wire_exited exited = { .timed_out = process->timed_out };
	int returncode = WIFSIGNALED(wait_status) ? -WTERMSIG(wait_status) :
						    WEXITSTATUS(wait_status);

	/* Its death may be seen before its last word. */
	process_read_status(process);
	process->reaped = true;
	process->timeout_ns = NEVER;
	process->stuck_ns = NEVER;
	if (process->failed)
		return;
	/* So that a short program's end is one write() to the host, and not two or three. */
	for (int i = 0; i < PROCESS_STREAMS; i++) {
		while (process_pump_output(process, &process->streams[i]))
			;
	}
	exited.returncode = htole32(returncode);
	exited.elapsed_ns = htole64(now_ns() - process->start_ns);
	channel_send(process->channel, WIRE_EXITED, process->id, &exited, sizeof(exited));
}

void process_signal(struct process *process, int signal)
{
	/* Its pid may be another's by now. */
	if (process->reaped)
		return;
	if (kill(process->pid, signal))
		complain("cannot send signal %d to %d: %s", signal, process->pid, strerror(errno));
	else if (signal == SIGKILL && process->stuck_ns == NEVER)
		process->stuck_ns = now_ns() + STUCK_NS;
}

void process_kill_group(struct process *process)
{
	if (process->reaped)
		return;
	/* The group is there once the child has called setsid(). */
	kill(-process->pid, SIGKILL);
	process_signal(process, SIGKILL);
}

int64_t process_expire(struct process *process, int64_t now_ns)
{
	if (now_ns >= process->timeout_ns) {
		process->timeout_ns = NEVER;
		process->timed_out = true;
		process_kill_group(process);
	}
	if (now_ns >= process->stuck_ns) {
		process->stuck_ns = NEVER;
		channel_send_u32(process->channel, WIRE_STUCK, process->id, process->pid);
	}
	return process->timeout_ns < process->stuck_ns ? process->timeout_ns : process->stuck_ns;
}

bool process_is_over(const struct process *process)
{
	for (int i = 0; i < PROCESS_STREAMS; i++) {
		if (process->streams[i].fd >= 0)
			return false;
	}
	return process->reaped;
}

void process_free(struct process *process)
{
	close_all(process);
	child_free(process->child);
	free(process->in);
	free(process);
}
