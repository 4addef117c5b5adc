// SPDX-License-Identifier: GPL-2.0-only
#include "reentry_programs.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <stddef.h>

#include "bpf.h"

#define COUNT(array)	(sizeof(array) / sizeof(*(array)))
#define SHARED(field)	offsetof(struct reentry_shared, field)

/*
 * How often the clock is read at most while a re-entry is held back: reading it takes from 15 ns
 * on, so this is for any rate from 20 000 a second on; a lower one is not kept. The verifier walks
 * through all of them and takes no loop of more than 8192 jumps.
 */
#define CLOCK_READS	6000

/* A load that was held up for less than this makes up for it: the mean rate is what was asked. */
#define LAG_NS		100000000

int reentry_load_redirect(int map, int ifindex)
{
	const struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
		/* if (bpf_ktime_get_ns() >= shared->deadline_ns) goto drop; */
		BPF_CALL_FUNC(BPF_FUNC_ktime_get_ns),
		BPF_LD_MAP_VALUE(BPF_REG_1, map),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_1, SHARED(deadline_ns)),
		BPF_JMP_REG(BPF_JGE, BPF_REG_0, BPF_REG_1, 11),
		/* if (data + ETH_HLEN > data_end) goto drop; */
		BPF_LDX_MEM(BPF_W, BPF_REG_2, BPF_REG_6, offsetof(struct xdp_md, data)),
		BPF_LDX_MEM(BPF_W, BPF_REG_3, BPF_REG_6, offsetof(struct xdp_md, data_end)),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_2),
		BPF_ADD64_IMM(BPF_REG_4, ETH_HLEN),
		BPF_JMP_REG(BPF_JGT, BPF_REG_4, BPF_REG_3, 6),
		/* if (ethertype is not ours) goto drop; */
		BPF_LDX_MEM(BPF_H, BPF_REG_4, BPF_REG_2, offsetof(struct ethhdr, h_proto)),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_4, htons(REENTRY_ETHERTYPE), 4),
		/* return bpf_redirect(ifindex, 0); */
		BPF_MOV64_IMM(BPF_REG_1, ifindex),
		BPF_MOV64_IMM(BPF_REG_2, 0),
		BPF_CALL_FUNC(BPF_FUNC_redirect),
		BPF_EXIT_INSN(),
		/* drop: return XDP_DROP; */
		BPF_MOV64_IMM(BPF_REG_0, XDP_DROP),
		BPF_EXIT_INSN(),
	};

	return bpf_load(BPF_PROG_TYPE_XDP, "XDP program", insns, COUNT(insns));
}

int reentry_load_counter(int map)
{
	const struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
		/* if ((u32)bpf_get_current_pid_tgid() != shared->pid) goto out; */
		BPF_CALL_FUNC(BPF_FUNC_get_current_pid_tgid),
		BPF_MOV32_REG(BPF_REG_0, BPF_REG_0),
		BPF_LD_MAP_VALUE(BPF_REG_7, map),
		BPF_LDX_MEM(BPF_W, BPF_REG_1, BPF_REG_7, SHARED(pid)),
		BPF_JMP_REG(BPF_JNE, BPF_REG_0, BPF_REG_1, 28),
		/* shared->polls++; */
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_7, SHARED(polls)),
		BPF_ADD64_IMM(BPF_REG_1, 1),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_1, SHARED(polls)),
		/* shared->work += (u32)args[1]; if (it is 0) goto out; */
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_6, 1 * sizeof(uint64_t)),
		BPF_MOV32_REG(BPF_REG_2, BPF_REG_2),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_7, SHARED(work)),
		BPF_ADD64_REG(BPF_REG_1, BPF_REG_2),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_1, SHARED(work)),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_2, 0, 19),
		/* if (work >= (u32)args[2]) goto out; shared->reentries++; */
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 2 * sizeof(uint64_t)),
		BPF_MOV32_REG(BPF_REG_3, BPF_REG_3),
		BPF_JMP_REG(BPF_JGE, BPF_REG_2, BPF_REG_3, 16),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_7, SHARED(reentries)),
		BPF_ADD64_IMM(BPF_REG_1, 1),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_1, SHARED(reentries)),
		/* if (!shared->period_ns) goto out; */
		BPF_LDX_MEM(BPF_DW, BPF_REG_6, BPF_REG_7, SHARED(period_ns)),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_6, 0, 11),
		/* for (i = 0; i < CLOCK_READS; i++) if (bpf_ktime_get_ns() >= shared->next_ns) break; */
		BPF_LDX_MEM(BPF_DW, BPF_REG_8, BPF_REG_7, SHARED(next_ns)),
		BPF_MOV64_IMM(BPF_REG_9, 0),
		BPF_CALL_FUNC(BPF_FUNC_ktime_get_ns),
		BPF_JMP_REG(BPF_JGE, BPF_REG_0, BPF_REG_8, 2),
		BPF_ADD64_IMM(BPF_REG_9, 1),
		BPF_JMP_IMM(BPF_JLT, BPF_REG_9, CLOCK_READS, -4),
		/* shared->next_ns += period_ns; if (it is LAG_NS ago) shared->next_ns = now; */
		BPF_ADD64_REG(BPF_REG_8, BPF_REG_6),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_8, SHARED(next_ns)),
		BPF_ADD64_IMM(BPF_REG_8, LAG_NS),
		BPF_JMP_REG(BPF_JGE, BPF_REG_8, BPF_REG_0, 1),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, SHARED(next_ns)),
		/* out: return 0; */
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return bpf_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "napi_poll counter (needs CONFIG_BPF_EVENTS)",
			insns, COUNT(insns));
}
