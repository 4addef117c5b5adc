// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a guest does first when it runs again after it was saved.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "wake.h"

#ifndef RNDRESEEDCRNG
#define RNDRESEEDCRNG	_IO('R', 0x07)
#endif

struct entropy {
	struct rand_pool_info info;
	unsigned char seed[WIRE_SEED_SIZE];
};

static void add_entropy(const unsigned char *seed)
{
	struct entropy entropy = {
		.info = { .entropy_count = 8 * WIRE_SEED_SIZE, .buf_size = WIRE_SEED_SIZE },
	};
	int fd = open("/dev/urandom", O_WRONLY | O_CLOEXEC);

	memcpy(entropy.info.buf, seed, WIRE_SEED_SIZE);
	if (fd < 0 || ioctl(fd, RNDADDENTROPY, &entropy) || ioctl(fd, RNDRESEEDCRNG))
		complain("cannot seed the random number generator: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

void wake(uint64_t realtime_ns, const unsigned char seed[WIRE_SEED_SIZE])
{
	struct timespec now = {
		.tv_sec = realtime_ns / NS_PER_S,
		.tv_nsec = realtime_ns % NS_PER_S,
	};

	if (clock_settime(CLOCK_REALTIME, &now))
		complain("cannot set the clock: %s", strerror(errno));
	add_entropy(seed);
}
