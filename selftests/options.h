/* SPDX-License-Identifier: GPL-2.0-only */
/* Command line options as a table: long names only, each with its range and help text. */
#ifndef SELFTEST_OPTIONS_H
#define SELFTEST_OPTIONS_H

enum option_kind {
	OPTION_FLAG,		/* bool *, takes no value */
	OPTION_NUMBER,		/* int * */
	OPTION_SECONDS,		/* uint64_t * of ns; decimals allowed */
	OPTION_MILLISECONDS,	/* uint64_t * of ns; decimals allowed */
	OPTION_TEXT,		/* const char ** */
};

struct option_row {
	const char *name;
	enum option_kind kind;
	void *value;		/* holds the default beforehand */
	double min, max;	/* in the option's own unit, both allowed */
	const char *help;
};

/*
 * Fill in the values of @rows (ended by a row without name). A bad option prints one line and exits
 * with EXIT_ERROR; --help prints @purpose and the table and exits with 0.
 */
void options_parse(int argc, char **argv, const char *purpose, const struct option_row *rows);

/* For values only the program can judge: print one line, exit with EXIT_ERROR. */
_Noreturn void options_reject(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
