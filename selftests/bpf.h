/* SPDX-License-Identifier: GPL-2.0-only */
/* bpf(2), raw: the calls and the instructions this needs, under the kernel's own names. */
#ifndef SELFTEST_BPF_H
#define SELFTEST_BPF_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

#define BPF_INSN(op, destination, source, offset, value) \
	((struct bpf_insn){ .code = (op), .dst_reg = (destination), .src_reg = (source), \
			    .off = (offset), .imm = (int32_t)(value) })

#define BPF_MOV64_REG(dst, src)		BPF_INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define BPF_MOV64_IMM(dst, imm)		BPF_INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm)
/* A 32-bit move clears the upper half. */
#define BPF_MOV32_REG(dst, src)		BPF_INSN(BPF_ALU | BPF_MOV | BPF_X, dst, src, 0, 0)
#define BPF_ADD64_REG(dst, src)		BPF_INSN(BPF_ALU64 | BPF_ADD | BPF_X, dst, src, 0, 0)
#define BPF_ADD64_IMM(dst, imm)		BPF_INSN(BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, imm)
#define BPF_LDX_MEM(size, dst, src, off) BPF_INSN(BPF_LDX | (size) | BPF_MEM, dst, src, off, 0)
#define BPF_STX_MEM(size, dst, src, off) BPF_INSN(BPF_STX | (size) | BPF_MEM, dst, src, off, 0)
#define BPF_JMP_REG(op, dst, src, off)	BPF_INSN(BPF_JMP | (op) | BPF_X, dst, src, off, 0)
#define BPF_JMP_IMM(op, dst, imm, off)	BPF_INSN(BPF_JMP | (op) | BPF_K, dst, 0, off, imm)
#define BPF_CALL_FUNC(function)		BPF_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define BPF_EXIT_INSN()			BPF_INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* The address of the first byte of an array map's value: two instructions long. */
#define BPF_LD_MAP_VALUE(dst, map) \
	BPF_INSN(BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_VALUE, 0, map), \
	BPF_INSN(0, 0, 0, 0, 0)

/*
 * An array map of one value of @size bytes, mapped into this process too: both sides read and
 * write the same memory, with no call that a busy kernel could hold up.
 */
int bpf_shared_map(size_t size, void **memory);

/* Load a GPL program of @type; @what names it in messages. */
int bpf_load(uint32_t type, const char *what, const struct bpf_insn *insns, size_t count);

/* Attached for as long as this process lives: a descriptor that closes detaches. */
void bpf_attach_xdp(int program, int ifindex);
void bpf_attach_raw_tracepoint(int program, const char *tracepoint);

#endif
