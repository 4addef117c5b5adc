/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NAPI_AGENT_H
#define NAPI_AGENT_H

#include <stdbool.h>

/*
 * Serve the host on fd until it is gone. tty says that fd is a serial port; alone, that the agent
 * is PID 1 and stays on the last CPU, out of the way of loads.
 */
void agent_serve(int fd, bool tty, bool alone);

#endif
