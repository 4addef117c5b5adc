// SPDX-License-Identifier: GPL-2.0-only
#include "deletion.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "clock.h"
#include "outcome.h"
#include "rtnl.h"

static char device[16];
static bool exists;

static void create(void)
{
	int error = rtnl_add_dummy(device);

	if (error == -EOPNOTSUPP)
		unsupported("no dummy devices: CONFIG_DUMMY is off or its module is not loaded");
	errno = -error;
	if (error)
		fail("cannot create the dummy device %s", device);
	exists = true;
}

void deletion_open(void)
{
	snprintf(device, sizeof(device), "ndel%d", getpid());
	rtnl_open();
	create();
}

void deletion_run(struct sample *sample)
{
	int error;

	if (!exists)
		create();
	series_begin();
	sample->start_ns = now_ns();
	error = rtnl_delete(device);
	sample->duration_ns = now_ns() - sample->start_ns;
	errno = -error;
	if (error)
		fail("cannot delete the dummy device %s", device);
	exists = false;
}
