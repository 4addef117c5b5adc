// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decoding of SPAWN.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan.h"
#include "wire.h"

/* Point at count strings that start at *text and return -1 if they do not all end before end. */
static int split(char **strings, size_t count, char **text, const char *end)
{
	for (size_t i = 0; i < count; i++) {
		char *nul = memchr(*text, '\0', end - *text);

		if (!nul)
			return -1;
		strings[i] = *text;
		*text = nul + 1;
	}
	strings[count] = NULL;
	return 0;
}

int plan_parse(struct plan *plan, const unsigned char *payload, size_t length)
{
	struct wire_spawn spawn;
	char *cwd[2] = { NULL };
	size_t argc, envc;
	const char *end;
	char *text;

	memset(plan, 0, sizeof(*plan));
	if (length < sizeof(spawn))
		goto malformed;
	memcpy(&spawn, payload, sizeof(spawn));
	plan->mode = le16toh(spawn.mode);
	plan->flags = le16toh(spawn.flags);
	plan->cpu = le32toh(spawn.cpu);
	plan->timeout_ms = le32toh(spawn.timeout_ms);
	plan->file_mode = le32toh(spawn.file_mode);
	plan->rows = le16toh(spawn.rows);
	plan->cols = le16toh(spawn.cols);
	argc = le16toh(spawn.argc);
	envc = le16toh(spawn.envc);
	if (!argc || plan->mode > WIRE_MODE_WRITE)
		goto malformed;

	length -= sizeof(spawn);
	plan->strings = malloc(length + 1);
	plan->argv = calloc(argc + 1, sizeof(char *));
	if (!plan->strings || !plan->argv)
		goto no_memory;
	memcpy(plan->strings, payload + sizeof(spawn), length);
	text = plan->strings;
	end = text + length;
	if (split(cwd, 1, &text, end) || split(plan->argv, argc, &text, end))
		goto malformed;
	plan->cwd = cwd[0][0] ? cwd[0] : "/";
	if (envc == WIRE_INHERIT_ENV) {
		plan->envp = environ;
	} else {
		plan->envp = calloc(envc + 1, sizeof(char *));
		if (!plan->envp)
			goto no_memory;
		if (split(plan->envp, envc, &text, end))
			goto malformed;
	}
	if (text != end)
		goto malformed;
	return 0;

malformed:
	errno = EINVAL;
no_memory:
	plan_free(plan);
	return -1;
}

void plan_free(struct plan *plan)
{
	int error = errno;

	free(plan->strings);
	free(plan->argv);
	if (plan->envp != environ)
		free(plan->envp);
	errno = error;
}
