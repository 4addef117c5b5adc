/* SPDX-License-Identifier: GPL-2.0-only */
/* Generic netlink: dumps of one family's objects. */
#ifndef SELFTEST_GENL_H
#define SELFTEST_GENL_H

#include <linux/netlink.h>
#include <stdint.h>

#define GENL_ATTRIBUTES	32

/* By attribute number; NULL: not there. */
typedef const struct nlattr *genl_object[GENL_ATTRIBUTES];

/* Connect, and find @family. Returns 0, or -1 with errno ENOENT where the kernel has none. */
int genl_open(const char *family);

/*
 * Dump @command with up to two 32-bit attributes (number 0: none), and call @take with each object.
 * Returns 0, or -1 with errno set: EOPNOTSUPP for a command the family does not have.
 */
struct genl_u32 {
	uint16_t number;
	uint32_t value;
};
int genl_dump(uint8_t command, const struct genl_u32 attributes[2],
	      void (*take)(genl_object object));

/* The value of an unsigned attribute of 4 or 8 bytes; -1 when it is not there. */
int64_t genl_number(const struct nlattr *attribute);

#endif
