/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System calls for a child that shares the agent's memory: libc's would store errno where the
 * agent, which goes on at the same time, has its own. They return -errno as the kernel does.
 */
#ifndef NAPI_RAW_H
#define NAPI_RAW_H

#include <sys/syscall.h>

static inline long raw_syscall(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
			 : "memory");
	return x0;
#else
#error "no system calls for this architecture"
#endif
}

/* Without a cast of each argument; unused ones are 0. */
#define raw(name, a, b, c, d) \
	raw_syscall(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d))

#endif
