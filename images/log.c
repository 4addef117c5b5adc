// SPDX-License-Identifier: GPL-2.0-only
/*
 * Complaints. The kernel log is kept by the host as a whole, so that is where PID 1 complains; its
 * own stderr is a console that may be slow.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "log.h"

static int kmsg = -1;

void log_to_kernel(void)
{
	kmsg = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
}

static void print(const char *format, va_list arguments)
{
	/* "<4>" is KERN_WARNING: shown on the console unless the kernel is quiet. */
	const char *prefix = kmsg >= 0 ? "<4>napi-agent: " : "napi-agent: ";
	char text[400];

	vsnprintf(text, sizeof(text), format, arguments);
	dprintf(kmsg >= 0 ? kmsg : STDERR_FILENO, "%s%s\n", prefix, text);
}

void complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print(format, arguments);
	va_end(arguments);
}

void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print(format, arguments);
	va_end(arguments);
	exit(1);
}
