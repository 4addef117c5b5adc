// SPDX-License-Identifier: GPL-2.0-only
/*
 * The command agent: one thread, one poll(), nothing that blocks.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"
#include "clock.h"
#include "log.h"
#include "process.h"
#include "wake.h"

#define PING_SIZE	8

/* Whom a descriptor in the poll set belongs to. */
struct watch {
	struct process *process;
	struct stream *stream;	/* NULL: stdin or status */
};

enum { WATCH_CHANNEL, WATCH_SIGNALS, WATCH_FIRST };
enum { WATCHES_PER_PROCESS = 2 + PROCESS_STREAMS };

struct agent {
	struct channel channel;
	cpu_set_t home_cpus;		/* the CPUs of programs */
	int signals;			/* signalfd */
	bool alone;			/* PID 1 */

	struct process *processes;
	size_t process_count;

	struct pollfd *polls;
	struct watch *watches;
	size_t poll_count;
	size_t poll_size;
};

static struct process *find_id(struct agent *agent, uint32_t id)
{
	struct process *process = agent->processes;

	while (process && process->id != id)
		process = process->next;
	return process;
}

static struct process *find_pid(struct agent *agent, pid_t pid)
{
	struct process *process = agent->processes;

	/* The pid of a reaped one may have been given to another. */
	while (process && (process->pid != pid || process->reaped))
		process = process->next;
	return process;
}

static void send_hello(struct agent *agent)
{
	struct utsname name;
	char text[1024];
	int length;

	uname(&name);
	length = snprintf(text, sizeof(text),
			  "protocol=1\nrelease=%s\nversion=%s\nmachine=%s\ncpus=%d\n"
			  "uptime_ns=%lld\nwindow=%zu\n",
			  name.release, name.version, name.machine, CPU_COUNT(&agent->home_cpus),
			  (long long)now_ns(), agent->channel.window);
	channel_send(&agent->channel, WIRE_HELLO, 0, text, length);
}

static void handle_spawn(struct agent *agent, uint32_t id, const unsigned char *payload,
			 size_t length)
{
	struct process *process;
	struct plan plan;

	if (!id || find_id(agent, id)) {
		complain("SPAWN with the id %u, which is %s", id, id ? "in use" : "reserved");
		return;
	}
	if (plan_parse(&plan, payload, length)) {
		process_send_failed(&agent->channel, id, errno, "spawn");
		complain("malformed SPAWN of %zu bytes", length);
		return;
	}
	process = process_start(&agent->channel, id, &plan, &agent->home_cpus);
	if (!process)
		return;
	process->next = agent->processes;
	agent->processes = process;
	agent->process_count++;
}

static void handle_ping(struct agent *agent, const unsigned char *payload)
{
	unsigned char answer[PING_SIZE + sizeof(uint64_t)];
	const uint64_t now = htole64(now_ns());

	memcpy(answer, payload, PING_SIZE);
	memcpy(answer + PING_SIZE, &now, sizeof(now));
	channel_send(&agent->channel, WIRE_PONG, 0, answer, sizeof(answer));
}

static void handle_wake(struct agent *agent, const unsigned char *payload)
{
	uint64_t realtime_ns;

	memcpy(&realtime_ns, payload, sizeof(realtime_ns));
	/* As an ordinary program on somebody's machine it has no business with the clock. */
	if (agent->alone)
		wake(le64toh(realtime_ns), payload + sizeof(realtime_ns));
	channel_restart(&agent->channel);
	send_hello(agent);
}

/* A frame for a program that the host does not yet know to be over is no error. */
static void handle_frame(void *context, const struct wire_header *header,
			 const unsigned char *payload)
{
	struct agent *agent = context;
	struct process *process = find_id(agent, header->id);
	uint32_t word = 0;

	if (header->kind != WIRE_STDIN && header->length == sizeof(word)) {
		memcpy(&word, payload, sizeof(word));
		word = le32toh(word);
	}
	switch (header->kind) {
	case WIRE_SPAWN:
		handle_spawn(agent, header->id, payload, header->length);
		return;
	case WIRE_STDIN:
		if (process)
			process_input(process, payload, header->length);
		return;
	case WIRE_PING:
		if (header->length != PING_SIZE)
			break;
		handle_ping(agent, payload);
		return;
	case WIRE_SIGNAL:
		if (header->length != sizeof(word))
			break;
		if (process)
			process_signal(process, word);
		return;
	case WIRE_WAKE:
		if (header->length != sizeof(uint64_t) + WIRE_SEED_SIZE)
			break;
		handle_wake(agent, payload);
		return;
	case WIRE_RESIZE:
		if (header->length != sizeof(word))
			break;
		if (process)
			process_resize(process, word & 0xffff, word >> 16);
		return;
	case WIRE_CLOSE:
		if (header->length != sizeof(word))
			break;
		if (process)
			process_close(process, word);
		return;
	case WIRE_HOLD:
	case WIRE_RELEASE:
		if (header->length != sizeof(word))
			break;
		if (process)
			process_hold(process, word, header->kind == WIRE_HOLD);
		return;
	}
	complain("malformed frame: kind %u, %u bytes", header->kind, header->length);
}

/* As PID 1 also reap what others have left behind. */
static void reap(struct agent *agent)
{
	struct signalfd_siginfo info;
	struct process *process;
	int status;
	pid_t pid;

	/* One SIGCHLD may stand for several deaths: only waitpid() knows. */
	while (read(agent->signals, &info, sizeof(info)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		process = find_pid(agent, pid);
		if (process)
			process_reap(process, status);
	}
}

static void watch(struct agent *agent, int fd, short events, struct process *process,
		  struct stream *stream)
{
	agent->polls[agent->poll_count] = (struct pollfd){ .fd = fd, .events = events };
	agent->watches[agent->poll_count] = (struct watch){ process, stream };
	agent->poll_count++;
}

static void watch_process(struct agent *agent, struct process *process)
{
	if (process->status_fd >= 0)
		watch(agent, process->status_fd, POLLIN, process, NULL);
	/* Only with something to write: a closed pipe would report POLLERR for ever. */
	if (process->in_fd >= 0 && process->in_used)
		watch(agent, process->in_fd, POLLOUT, process, NULL);
	if (!channel_has_room(&agent->channel))
		return;
	for (int i = 0; i < PROCESS_STREAMS; i++) {
		struct stream *stream = &process->streams[i];

		if (stream->fd >= 0 && !stream->held)
			watch(agent, stream->fd, POLLIN, process, stream);
	}
}

static void watch_all(struct agent *agent)
{
	size_t needed = WATCH_FIRST + WATCHES_PER_PROCESS * agent->process_count;
	short events = 0;

	if (needed > agent->poll_size) {
		agent->poll_size = 2 * needed;
		agent->polls = realloc(agent->polls, agent->poll_size * sizeof(*agent->polls));
		agent->watches = realloc(agent->watches,
					 agent->poll_size * sizeof(*agent->watches));
		if (!agent->polls || !agent->watches)
			die("out of memory");
	}
	agent->poll_count = 0;
	if (channel_may_receive(&agent->channel))
		events |= POLLIN;
	if (channel_has_output(&agent->channel))
		events |= POLLOUT;
	watch(agent, agent->channel.fd, events, NULL, NULL);
	watch(agent, agent->signals, POLLIN, NULL, NULL);
	for (struct process *process = agent->processes; process; process = process->next)
		watch_process(agent, process);
}

static void serve_watch(const struct pollfd *poll, const struct watch *watch)
{
	struct process *process = watch->process;

	/* A CLOSE or a FAILED of this turn may have ended it. */
	if (watch->stream) {
		if (watch->stream->fd == poll->fd)
			process_pump_output(process, watch->stream);
	} else if (process->status_fd == poll->fd) {
		process_read_status(process);
	} else if (process->in_fd == poll->fd) {
		process_pump_input(process);
	}
}

/* Run the timers of all programs and return how many ms poll() may wait, -1 for ever. */
static int expire(struct agent *agent)
{
	int64_t next_ns = INT64_MAX;
	int64_t now = now_ns();

	for (struct process *process = agent->processes; process; process = process->next) {
		int64_t due_ns = process_expire(process, now);

		if (due_ns < next_ns)
			next_ns = due_ns;
	}
	if (next_ns == INT64_MAX)
		return -1;
	next_ns = (next_ns - now + NS_PER_MS - 1) / NS_PER_MS;
	return next_ns < INT_MAX ? next_ns : INT_MAX;
}

/*
 * Forget the programs that are over, and let the first of the others be the last next time: else
 * a few that flood the channel would keep the rest waiting.
 */
static void forget_and_rotate(struct agent *agent)
{
	struct process **link = &agent->processes;
	struct process *first;

	while (*link) {
		struct process *process = *link;

		if (!process_is_over(process)) {
			link = &process->next;
			continue;
		}
		*link = process->next;
		agent->process_count--;
		process_free(process);
	}
	first = agent->processes;
	if (first && first->next) {
		agent->processes = first->next;
		first->next = NULL;
		*link = first;
	}
}

/* One turn of the event loop. False: the host is gone. */
static bool turn(struct agent *agent)
{
	int timeout_ms = expire(agent);
	short channel_events;

	if (!channel_flush(&agent->channel))
		return false;
	watch_all(agent);
	if (poll(agent->polls, agent->poll_count, timeout_ms) < 0)
		return true;
	channel_events = agent->polls[WATCH_CHANNEL].revents;
	if (channel_events & (POLLHUP | POLLERR))
		return false;
	if ((channel_events & POLLIN) && !channel_receive(&agent->channel, handle_frame, agent))
		return false;
	for (size_t i = WATCH_FIRST; i < agent->poll_count; i++) {
		if (agent->polls[i].revents)
			serve_watch(&agent->polls[i], &agent->watches[i]);
	}
	if (agent->polls[WATCH_SIGNALS].revents)
		reap(agent);
	forget_and_rotate(agent);
	return true;
}

static void pin_to_last_cpu(const cpu_set_t *cpus)
{
	cpu_set_t last;

	for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
		if (!CPU_ISSET(cpu, cpus))
			continue;
		CPU_ZERO(&last);
		CPU_SET(cpu, &last);
		if (sched_setaffinity(0, sizeof(last), &last))
			complain("cannot stay on CPU %d: %s", cpu, strerror(errno));
		return;
	}
}

void agent_serve(int fd, bool tty, bool alone)
{
	static struct agent agent;	/* too large for the stack */
	sigset_t signals;

	agent.alone = alone;
	sched_getaffinity(0, sizeof(agent.home_cpus), &agent.home_cpus);
	if (alone)
		pin_to_last_cpu(&agent.home_cpus);
	else
		prctl(PR_SET_CHILD_SUBREAPER, 1);	/* inherit orphans as PID 1 does */

	/* Programs are to start with no signal ignored: SIGPIPE is blocked instead. */
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&signals);
	sigaddset(&signals, SIGPIPE);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	sigdelset(&signals, SIGPIPE);
	agent.signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (agent.signals < 0)
		die("cannot make a signalfd: %s", strerror(errno));

	channel_init(&agent.channel, fd, tty);
	send_hello(&agent);
	while (turn(&agent))
		;
	for (struct process *process = agent.processes; process; process = process->next)
		process_kill_group(process);
}
