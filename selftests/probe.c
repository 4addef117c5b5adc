// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "probe.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "tracefs.h"

#define PATH_SIZE	128
#define SYMBOL_SIZE	128

/* Pids are unique, so the events of two of our programs never meet. */
#define GROUP		"napi_selftest_%d"

/*
 * Disarming waits for a grace period. A process waits this long for it to be done, then leaves it
 * to a child: under the load that is measured here it could last as long as that does.
 */
#define DISARM_NS	(2 * NSEC_PER_SEC)

static const char *root;
static char instance[PATH_SIZE];
static FILE *pipe_file;
static pid_t owner;
static bool added[PROBES_MAX];

static bool define(const char *kind, const char *event, unsigned int index, const char *symbol)
{
	char text[64 + SYMBOL_SIZE];

	snprintf(text, sizeof(text), "%s:" GROUP "/%s_%u %s\n", kind, owner, event, index, symbol);
	return tracefs_write(text, "%s/kprobe_events", root);
}

static void enable(const char *event, unsigned int index)
{
	char filter[32];

	snprintf(filter, sizeof(filter), "common_pid==%d", owner);
	tracefs_write(filter, "%s/events/" GROUP "/%s_%u/filter", instance, owner, event, index);
	tracefs_write("1", "%s/events/" GROUP "/%s_%u/enable", instance, owner, event, index);
}

static void undefine(const char *event, unsigned int index)
{
	char text[64];

	tracefs_write("0", "%s/events/" GROUP "/%s_%u/enable", instance, owner, event, index);
	snprintf(text, sizeof(text), "-:" GROUP "/%s_%u\n", owner, event, index);
	tracefs_write(text, "%s/kprobe_events", root);
}

/* A probe outlives its process, hence this. */
static void remove_all(void)
{
	for (unsigned int i = 0; i < PROBES_MAX; i++) {
		if (added[i]) {
			undefine("enter", i);
			undefine("leave", i);
		}
	}
	rmdir(instance);
}

static void probes_close(void)
{
	uint64_t end_ns = now_ns() + DISARM_NS;
	pid_t child;

	/* An instance with an open file cannot go. */
	if (pipe_file)
		fclose(pipe_file);
	child = fork();
	if (child < 0)
		remove_all();
	if (child == 0) {
		/* Whoever reads our output must not wait for the child to close it. */
		setsid();
		close(STDIN_FILENO);
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		remove_all();
		_exit(0);
	}
	while (child > 0 && waitpid(child, NULL, WNOHANG) == 0 && now_ns() < end_ns)
		clock_sleep(10 * NSEC_PER_MSEC);
}

const char *probes_open(void)
{
	char path[PATH_SIZE + 16];
	int fd;

	owner = getpid();
	root = tracefs_root();
	if (!root)
		return "tracefs cannot be mounted";
	snprintf(path, sizeof(path), "%s/kprobe_events", root);
	if (access(path, W_OK))
		return "the kernel lacks CONFIG_KPROBE_EVENTS";
	snprintf(instance, sizeof(instance), "%s/instances/" GROUP, root, owner);
	if (mkdir(instance, 0700))
		return "a trace instance cannot be made";
	atexit(probes_close);
	/*
	 * The buffer keeps its size, though a tenth would do: resizing runs a work item on each
	 * CPU, and so waits for the one that NAPI does not leave.
	 */
	tracefs_write("mono", "%s/trace_clock", instance);
	snprintf(path, sizeof(path), "%s/trace_pipe", instance);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		pipe_file = fdopen(fd, "r");
	return pipe_file ? NULL : "trace_pipe cannot be read";
}

static bool is_clone(const char *symbol, const char *name)
{
	static const char *const suffixes[] = { ".isra.", ".part.", ".constprop." };
	size_t length = strlen(name);

	if (strncmp(symbol, name, length))
		return false;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (!strncmp(symbol + length, suffixes[i], strlen(suffixes[i])))
			return true;
	return symbol[length] == '\0';
}

/*
 * available_filter_functions has the symbol first in the line, kallsyms, which serves kernels
 * without the function tracer, third: look at every word.
 */
static bool find_symbol(const char *path, const char *name, char *symbol)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	if (!file)
		return false;
	while (!found && getline(&line, &size, file) > 0) {
		char *rest = line, *word;

		while (!found && (word = strsep(&rest, " \t\n"))) {
			if (is_clone(word, name)) {
				snprintf(symbol, SYMBOL_SIZE, "%s", word);
				found = true;
			}
		}
	}
	free(line);
	fclose(file);
	return found;
}

bool probes_add(unsigned int index, const char *name)
{
	char symbol[SYMBOL_SIZE];
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/available_filter_functions", root);
	if (access(path, R_OK))
		strcpy(path, "/proc/kallsyms");
	if (!find_symbol(path, name, symbol))
		return false;
	/* Others wait in these functions too, each in one of the 64 slots until it returns. */
	if (!define("r64", "leave", index, symbol))
		return false;
	if (!define("p", "enter", index, symbol)) {
		undefine("leave", index);
		return false;
	}
	added[index] = true;
	enable("leave", index);
	enable("enter", index);
	return true;
}

struct event {
	bool enter;
	unsigned int function;
	uint64_t time_ns;
};

/* "  comm-123  [001] .....    12.345678: enter_0: (synchronize_net+0x0/0x30)" */
static bool parse_event(const char *line, struct event *event)
{
	const char *name = strstr(line, ": enter_");
	const char *time;
	unsigned long long seconds, microseconds;

	event->enter = name;
	if (!name)
		name = strstr(line, ": leave_");
	if (!name)
		return false;
	for (time = name; time > line && time[-1] != ' '; time--)
		;
	if (sscanf(time, "%llu.%6llu", &seconds, &microseconds) != 2 ||
	    sscanf(name + strlen(": enter_"), "%u:", &event->function) != 1)
		return false;
	event->time_ns = seconds * NSEC_PER_SEC + microseconds * NSEC_PER_USEC;
	return true;
}

size_t probes_read(struct probe_call *calls, size_t max)
{
	struct probe_call call = { 0 };
	struct event event;
	unsigned int depth = 0;
	char *line = NULL;
	size_t size = 0, count = 0;

	while (count < max && getline(&line, &size, pipe_file) > 0) {
		if (!parse_event(line, &event))
			continue;
		if (!depth && event.enter) {
			call.function = event.function;
			call.start_ns = event.time_ns;
			depth = 1;
		} else if (depth && event.function == call.function) {
			depth += event.enter ? 1 : -1;
			if (!depth) {
				call.duration_ns = event.time_ns - call.start_ns;
				calls[count++] = call;
			}
		}
	}
	/* The pipe is empty, which stdio takes for an error. */
	clearerr(pipe_file);
	free(line);
	return count;
}
