// SPDX-License-Identifier: GPL-2.0-only
#include "options.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "outcome.h"

static const char *program = "selftest";

void options_reject(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs(" (see --help)\n", stderr);
	exit(EXIT_ERROR);
}

static _Noreturn void print_help(const char *purpose, const struct option_row *rows)
{
	static const char *const operand[] = {
		[OPTION_FLAG] = "", [OPTION_NUMBER] = "N", [OPTION_SECONDS] = "SECONDS",
		[OPTION_MILLISECONDS] = "MS", [OPTION_TEXT] = "NAME",
	};

	printf("%s: %s\n", program, purpose);
	for (; rows->name; rows++) {
		char left[40];

		snprintf(left, sizeof(left), "--%s %s", rows->name, operand[rows->kind]);
		printf("  %-22s %s\n", left, rows->help);
	}
	exit(EXIT_PASSED);
}

static void store(const struct option_row *row, const char *text)
{
	char *end;
	double number;

	/* strtod() would also take spaces, hexadecimal, "nan" and "inf". */
	if (!*text || text[strspn(text, "0123456789.-")])
		options_reject("--%s: not a number: '%s'", row->name, text);
	number = strtod(text, &end);
	if (*end || (row->kind == OPTION_NUMBER && strchr(text, '.')))
		options_reject("--%s: not a %snumber: '%s'", row->name,
			       row->kind == OPTION_NUMBER ? "whole " : "", text);
	if (number < row->min || number > row->max)
		options_reject("--%s: %s is not in %g..%g", row->name, text, row->min, row->max);

	switch (row->kind) {
	case OPTION_NUMBER:
		*(int *)row->value = (int)number;
		break;
	case OPTION_SECONDS:
		*(uint64_t *)row->value = (uint64_t)(number * (double)NSEC_PER_SEC);
		break;
	case OPTION_MILLISECONDS:
		*(uint64_t *)row->value = (uint64_t)(number * (double)NSEC_PER_MSEC);
		break;
	case OPTION_FLAG:
	case OPTION_TEXT:
		break;
	}
}

/* Both "--cpu 1" and "--cpu=1". */
static bool is_named(const struct option_row *row, const char *arg)
{
	size_t length = strlen(row->name);

	return !strncmp(arg, "--", 2) && !strncmp(arg + 2, row->name, length) &&
	       (arg[2 + length] == '\0' || arg[2 + length] == '=');
}

void options_parse(int argc, char **argv, const char *purpose, const struct option_row *rows)
{
	const char *slash = strrchr(argv[0], '/');

	program = slash ? slash + 1 : argv[0];
	for (int i = 1; i < argc; i++) {
		const struct option_row *row = rows;
		const char *value;

		if (!strcmp(argv[i], "--help"))
			print_help(purpose, rows);
		while (row->name && !is_named(row, argv[i]))
			row++;
		if (!row->name)
			options_reject("unknown option '%s'", argv[i]);
		value = strchr(argv[i], '=');
		if (row->kind == OPTION_FLAG) {
			if (value)
				options_reject("--%s takes no value", row->name);
			*(bool *)row->value = true;
			continue;
		}
		value = value ? value + 1 : argv[++i];
		if (!value)
			options_reject("--%s needs a value", row->name);
		if (row->kind == OPTION_TEXT)
			*(const char **)row->value = value;
		else
			store(row, value);
	}
}
