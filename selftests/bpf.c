// SPDX-License-Identifier: GPL-2.0-only
#include "bpf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "outcome.h"

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* EPERM to root means lockdown or a security module, EINVAL a command or type not built in. */
static void check_support(const char *what)
{
	if (errno == ENOSYS || errno == EPERM || errno == EINVAL)
		unsupported("%s: %s (CONFIG_BPF_SYSCALL, CONFIG_BPF_EVENTS?)", what,
			    strerror(errno));
}

int bpf_shared_map(size_t size, void **memory)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = sizeof(uint32_t),
		.value_size = (uint32_t)size,
		.max_entries = 1,
		.map_flags = BPF_F_MMAPABLE,	/* Linux 5.5 */
	};
	int map = bpf(BPF_MAP_CREATE, &attr);

	if (map < 0) {
		check_support("no mappable BPF array");
		fail("cannot create a BPF array");
	}
	*memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
	if (*memory == MAP_FAILED)
		fail("cannot map the BPF array");
	return map;
}

int bpf_load(uint32_t type, const char *what, const struct bpf_insn *insns, size_t count)
{
	static char log[65536];
	union bpf_attr attr = {
		.prog_type = type,
		.insns = (uintptr_t)insns,
		.insn_cnt = (uint32_t)count,
		.license = (uintptr_t)"GPL",
	};
	int program = bpf(BPF_PROG_LOAD, &attr);
	int error = errno;

	if (program >= 0)
		return program;
	/* Only now: the log of a program with a loop is long, and to be too long is an error too. */
	attr.log_level = 1;
	attr.log_size = sizeof(log);
	attr.log_buf = (uintptr_t)log;
	bpf(BPF_PROG_LOAD, &attr);
	errno = error;
	/* A log means that the verifier knew the type and disliked the program: our mistake. */
	if (*log)
		fputs(log, stderr);
	else
		check_support(what);
	fail("cannot load the %s", what);
}

void bpf_attach_xdp(int program, int ifindex)
{
	union bpf_attr attr = {
		.link_create = {
			.prog_fd = (uint32_t)program,
			.target_ifindex = (uint32_t)ifindex,
			.attach_type = BPF_XDP,
		},
	};

	if (bpf(BPF_LINK_CREATE, &attr) < 0) {
		check_support("no XDP link");
		fail("cannot attach the XDP program");
	}
}

void bpf_attach_raw_tracepoint(int program, const char *tracepoint)
{
	union bpf_attr attr = {
		.raw_tracepoint = {
			.name = (uintptr_t)tracepoint,
			.prog_fd = (uint32_t)program,
		},
	};

	if (bpf(BPF_RAW_TRACEPOINT_OPEN, &attr) < 0) {
		if (errno == ENOENT)
			unsupported("the kernel has no tracepoint %s", tracepoint);
		fail("cannot attach to the tracepoint %s", tracepoint);
	}
}
