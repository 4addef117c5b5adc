/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NAPI_PORT_H
#define NAPI_PORT_H

#include <stdbool.h>

/*
 * Open the port to the host, nonblocking: the tty that napi.channel=ttyS1 on the kernel command
 * line names, else the virtio port "napi.agent". Returns -1 after a complaint.
 */
int port_open(bool *tty);

#endif
