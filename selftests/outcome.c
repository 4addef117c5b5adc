// SPDX-License-Identifier: GPL-2.0-only
#include "outcome.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ktap.h"

static bool json_mode;

void outcome_mode(bool json)
{
	json_mode = json;
}

bool outcome_json(void)
{
	return json_mode;
}

void json_line(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	if (fflush(stdout))
		exit(EXIT_ERROR);
}

/* What a kernel or a path may put into a message must not break the line or the JSON string. */
static void make_quotable(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == '\x7f')
			*text = ' ';
		else if (*text == '"' || *text == '\\')
			*text = '\'';
	}
}

void fail(const char *format, ...)
{
	int error = errno;
	char message[512];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	make_quotable(message);
	if (json_mode) {
		json_line("{\"event\":\"error\",\"message\":\"%s: %s\",\"errno\":%d}",
			  message, strerror(error), error);
		exit(EXIT_ERROR);
	}
	strncat(message, ": ", sizeof(message) - strlen(message) - 1);
	strncat(message, strerror(error), sizeof(message) - strlen(message) - 1);
	ktap_bail_out(message);
	exit(EXIT_FAILED);
}

void unsupported(const char *format, ...)
{
	char message[512];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	make_quotable(message);
	if (json_mode)
		json_line("{\"event\":\"unsupported\",\"message\":\"%s\"}", message);
	else
		ktap_skip_all(message);
	exit(EXIT_SKIPPED);
}

void require_root(void)
{
	if (geteuid())
		unsupported("must be run as root");
}
