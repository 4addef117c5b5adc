/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NAPI_WAKE_H
#define NAPI_WAKE_H

#include <stdint.h>

#include "wire.h"

/*
 * Tell the kernel what it cannot know after it was saved and restored: the time, and that its
 * random numbers are those of every other copy.
 */
void wake(uint64_t realtime_ns, const unsigned char seed[WIRE_SEED_SIZE]);

#endif
