/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NAPI_PLAN_H
#define NAPI_PLAN_H

#include <stddef.h>
#include <stdint.h>

/* A decoded SPAWN: what the host wants to run. */
struct plan {
	uint16_t mode;
	uint16_t flags;
	int32_t cpu;
	uint32_t timeout_ms;
	uint32_t file_mode;
	uint16_t rows;
	uint16_t cols;
	char *strings;	/* what the following point into */
	char *cwd;
	char **argv;
	char **envp;
};

/* Decode the payload of a SPAWN. Returns 0, or -1 with errno: EINVAL if it is malformed. */
int plan_parse(struct plan *plan, const unsigned char *payload, size_t length);

/* Free what plan_parse() allocated. */
void plan_free(struct plan *plan);

#endif
