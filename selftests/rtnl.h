/* SPDX-License-Identifier: GPL-2.0-only */
/* rtnetlink, raw: the few requests the programs make. Each returns 0 or -errno of the ack. */
#ifndef SELFTEST_RTNL_H
#define SELFTEST_RTNL_H

/* Open the socket all requests use; fails where there is none. */
void rtnl_open(void);

int rtnl_add_dummy(const char *name);

/* A veth pair with one RX and one TX queue on each side: one NAPI each. */
int rtnl_add_veth(const char *name, const char *peer);

int rtnl_set_up(const char *name);

/* Returns when the kernel has acknowledged, that is after every wait of the deletion. */
int rtnl_delete(const char *name);

#endif
