// SPDX-License-Identifier: GPL-2.0-only
#include "ktap.h"

#include <stdarg.h>
#include <stdio.h>

static bool version_printed;
static bool failed;
static unsigned int results;

static void print_version(void)
{
	if (!version_printed)
		puts("KTAP version 1");
	version_printed = true;
}

void ktap_plan(unsigned int tests)
{
	print_version();
	printf("1..%u\n", tests);
	fflush(stdout);
}

void ktap_note(const char *format, ...)
{
	va_list args;

	print_version();
	fputs("# ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

void ktap_result(bool passed, const char *name)
{
	if (!passed)
		failed = true;
	printf("%s %u %s\n", passed ? "ok" : "not ok", ++results, name);
	fflush(stdout);
}

void ktap_skip(const char *name, const char *reason)
{
	printf("ok %u %s # SKIP %s\n", ++results, name, reason);
	fflush(stdout);
}

void ktap_skip_all(const char *reason)
{
	print_version();
	printf("1..0 # SKIP %s\n", reason);
	fflush(stdout);
}

void ktap_bail_out(const char *reason)
{
	print_version();
	printf("Bail out! %s\n", reason);
	fflush(stdout);
}

bool ktap_failed(void)
{
	return failed;
}
