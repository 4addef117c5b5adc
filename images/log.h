/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NAPI_LOG_H
#define NAPI_LOG_H

/* Send complaints to the kernel log from now on; before, or without it, they go to stderr. */
void log_to_kernel(void);

/* Print one line; the newline is added. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As complain(), then end the process: of PID 1 this is a kernel panic, which the host sees. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
