/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NAPI_BOOT_H
#define NAPI_BOOT_H

/* Make a running system out of a booted kernel. What fails is complained of and left out. */
void boot(void);

/* Power the machine off at once, without a farewell to anything. Does not return. */
void power_off(void) __attribute__((noreturn));

#endif
