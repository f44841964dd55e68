/* lower/wgmma.c - the instructions of sm_90a, as text.
 *
 * wgmma reads and writes its accumulators while the program goes on. Its inputs are tied to its outputs, and so are
 * those of the fence before and of the wait behind it: nothing can come between that touches them. */
#include "lower/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 4096, MOST_TIED = 160 };

/* Every one of them concerns other threads: `convergent`, and memory is not what it was. */
static LLVMValueRef ptx(struct emit *e, LLVMTypeRef result, const char *text, const char *constraints,
                        const LLVMValueRef *args, unsigned n)
{
    LLVMTypeRef types[2 * MOST_TIED];
    for (unsigned i = 0; i < n; i++)
        types[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, n, 0);
    LLVMValueRef code =
        LLVMGetInlineAsm(type, text, strlen(text), constraints, strlen(constraints), 1, 0, LLVMInlineAsmDialectATT, 0);
    LLVMValueRef x = LLVMBuildCall2(e->b, type, code, (LLVMValueRef *)(uintptr_t)args, n, "");
    const unsigned kind = LLVMGetEnumAttributeKindForName("convergent", strlen("convergent"));
    LLVMAddCallSiteAttribute(x, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(e->context, kind, 0));
    return x;
}

static void ptx_void(struct emit *e, const char *text, const char *constraints, const LLVMValueRef *args, unsigned n)
{
    ptx(e, LLVMVoidTypeInContext(e->context), text, constraints, args, n);
}

LLVMValueRef shared_address(struct emit *e, LLVMValueRef offset)
{
    return LLVMBuildAdd(e->b, LLVMBuildPtrToInt(e->b, e->arena, e->i32, ""), offset, "");
}

/* ---- barriers ---- */

void mbarrier_init(struct emit *e, LLVMValueRef barrier, uint32_t count)
{
    LLVMValueRef args[] = {barrier, imm(e, count)};
    ptx_void(e, "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}", args, 2);
}

void fence_mbarrier_init(struct emit *e)
{
    ptx_void(e, "fence.mbarrier_init.release.cluster;", "~{memory}", NULL, 0);
}

void mbarrier_expect(struct emit *e, LLVMValueRef barrier, uint32_t bytes)
{
    LLVMValueRef args[] = {barrier, imm(e, bytes)};
    ptx_void(e, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,r,~{memory}", args, 2);
}

void mbarrier_arrive(struct emit *e, LLVMValueRef barrier)
{
    ptx_void(e, "mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}", &barrier, 1);
}

static void spin_until(struct emit *e, const char *text, const char *constraints, LLVMValueRef at, LLVMValueRef value)
{
    LLVMBasicBlockRef spin = LLVMAppendBasicBlockInContext(e->context, e->function, "spin");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(e->context, e->function, "arrived");
    LLVMBuildBr(e->b, spin);
    LLVMPositionBuilderAtEnd(e->b, spin);
    LLVMValueRef args[] = {at, value};
    LLVMValueRef ready = ptx(e, e->i32, text, constraints, args, 2);
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntNE, ready, imm(e, 0), ""), done, spin);
    LLVMPositionBuilderAtEnd(e->b, done);
}

void mbarrier_wait(struct emit *e, LLVMValueRef barrier, LLVMValueRef parity)
{
    spin_until(e, "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [$1], $2; selp.b32 $0, 1, 0, p; }",
               "=r,r,r,~{memory}", barrier, parity);
}

/* ---- thread blocks ---- */

void turn_wait(struct emit *e, LLVMValueRef address, LLVMValueRef turn)
{
    spin_until(
        e,
        "{ .reg .pred p; .reg .b32 x; ld.acquire.gpu.global.b32 x, [$1]; setp.eq.s32 p, x, $2; selp.b32 $0, 1, 0, p; }",
        "=r,l,r,~{memory}", address, turn);
}

void turn_set(struct emit *e, LLVMValueRef address, LLVMValueRef turn)
{
    LLVMValueRef args[] = {address, turn};
    ptx_void(e, "st.release.gpu.global.b32 [$0], $1;", "l,r,~{memory}", args, 2);
}

/* ---- clusters ---- */

LLVMValueRef cluster_rank(struct emit *e)
{
    return ptx(e, e->i32, "mov.u32 $0, %cluster_ctarank;", "=r", NULL,
               0); /* anew each time: registers are what is short */
}

LLVMValueRef cluster_address(struct emit *e, LLVMValueRef address, LLVMValueRef rank)
{
    LLVMValueRef args[] = {address, rank};
    return ptx(e, e->i32, "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r", args, 2);
}

void store_far(struct emit *e, LLVMValueRef address, const LLVMValueRef x[4], LLVMValueRef barrier)
{
    LLVMValueRef args[] = {address, x[0], x[1], x[2], x[3], barrier};
    ptx_void(e, "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [$0], {$1, $2, $3, $4}, [$5];",
             "r,f,f,f,f,r,~{memory}", args, 6);
}

/* .release.cluster is a fence of the whole GPU to the assembler: it waits until all that the thread has stored is there, a
 * quarter of a chunk. These two are what PTX 8.6's fence.release.sync_restrict::shared::cta.cluster is, which is enough for what
 * lies in shared memory; the latter needs driver 565, and its counterpart where one waits is no instruction at all. */
void mbarrier_arrive_far(struct emit *e, LLVMValueRef barrier)
{
    ptx_void(e, "fence.acq_rel.cta;\nfence.proxy.async.shared::cta;\nmbarrier.arrive.shared::cluster.b64 _, [$0];",
             "r,~{memory}", &barrier, 1);
}

void mbarrier_arrive_expecting(struct emit *e, LLVMValueRef barrier, uint32_t bytes)
{
    LLVMValueRef args[] = {barrier, imm(e, bytes)};
    ptx_void(e, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}", args, 2);
}

void cluster_barrier(struct emit *e)
{
    ptx_void(e, "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;", "~{memory}", NULL, 0);
}

void fence_async(struct emit *e)
{
    ptx_void(e, "fence.proxy.async.shared::cta;", "~{memory}", NULL, 0);
}

void wait_for_kernels(struct emit *e)
{
    ptx_void(e, "griddepcontrol.wait;", "~{memory}", NULL, 0);
}

void let_next_begin(struct emit *e)
{
    ptx_void(e, "griddepcontrol.launch_dependents;", "~{memory}", NULL, 0);
}

void named_barrier(struct emit *e, LLVMValueRef number, uint32_t threads)
{
    LLVMValueRef args[] = {number, imm(e, threads)};
    ptx_void(e, "bar.sync $0, $1;", "r,r,~{memory}", args, 2);
}

void named_barrier_arrive(struct emit *e, LLVMValueRef number, uint32_t threads)
{
    LLVMValueRef args[] = {number, imm(e, threads)};
    ptx_void(e, "bar.arrive $0, $1;", "r,r,~{memory}", args, 2);
}

LLVMValueRef named_barrier_any(struct emit *e, LLVMValueRef number, uint32_t threads, LLVMValueRef x)
{
    LLVMValueRef args[] = {number, imm(e, threads), LLVMBuildZExt(e->b, x, e->i32, "")};
    LLVMValueRef any =
        ptx(e, e->i32, "{ .reg .pred p; setp.ne.b32 p, $3, 0; bar.red.or.pred p, $1, $2, p; selp.b32 $0, 1, 0, p; }",
            "=r,r,r,r,~{memory}", args, 3);
    return LLVMBuildICmp(e->b, LLVMIntNE, any, imm(e, 0), "");
}

void sync_warp(struct emit *e)
{
    ptx_void(e, "bar.warp.sync -1;", "~{memory}", NULL, 0);
}

void set_registers_of_warps(struct emit *e, bool more, uint32_t registers)
{
    char text[80];
    snprintf(text, sizeof text, "setmaxnreg.%s.sync.aligned.u32 %u;", more ? "inc" : "dec", registers);
    ptx_void(e, text, "~{memory}", NULL, 0);
}

/* ---- tensor maps ---- */

void map_load(struct emit *e, LLVMValueRef map, LLVMValueRef to, const LLVMValueRef at[5], LLVMValueRef barrier)
{
    LLVMValueRef args[] = {to, map, at[0], at[1], at[2], at[3], at[4], barrier};
    ptx_void(
        e,
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$2, $3, $4, $5, $6}], [$7];",
        "r,l,r,r,r,r,r,r,~{memory}", args, 8);
}

void map_load_to_many(struct emit *e, LLVMValueRef map, LLVMValueRef to, const LLVMValueRef at[5], LLVMValueRef barrier,
                      LLVMValueRef ranks)
{
    LLVMValueRef args[] = {
        to, map, at[0], at[1], at[2], at[3], at[4], barrier, LLVMBuildTrunc(e->b, ranks, e->i16, "")};
    ptx_void(
        e,
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [$0], [$1, {$2, $3, $4, $5, $6}], [$7], $8;",
        "r,l,r,r,r,r,r,r,h,~{memory}", args, 9);
}

void map_store(struct emit *e, LLVMValueRef map, LLVMValueRef from, const LLVMValueRef at[5])
{
    LLVMValueRef args[] = {map, from, at[0], at[1], at[2], at[3], at[4]};
    ptx_void(e, "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [$0, {$2, $3, $4, $5, $6}], [$1];",
             "l,r,r,r,r,r,r,~{memory}", args, 7);
}

void fence_global(struct emit *e)
{
    ptx_void(e, "fence.proxy.async;", "~{memory}", NULL, 0);
}

void map_add(struct emit *e, LLVMValueRef map, LLVMValueRef from, const LLVMValueRef at[5])
{
    LLVMValueRef args[] = {map, from, at[0], at[1], at[2], at[3], at[4]};
    ptx_void(e,
             "cp.reduce.async.bulk.tensor.5d.global.shared::cta.add.tile.bulk_group [$0, {$2, $3, $4, $5, $6}], [$1];",
             "l,r,r,r,r,r,r,~{memory}", args, 7);
}

void map_store_commit(struct emit *e)
{
    ptx_void(e, "cp.async.bulk.commit_group;", "~{memory}", NULL, 0);
}

void map_store_wait(struct emit *e, bool read_only)
{
    ptx_void(e, read_only ? "cp.async.bulk.wait_group.read 0;" : "cp.async.bulk.wait_group 0;", "~{memory}", NULL, 0);
}

/* ---- matrices of 8 x 8 ---- */

void load_matrices(struct emit *e, LLVMValueRef address, LLVMValueRef out[4])
{
    LLVMTypeRef words[] = {e->i32, e->i32, e->i32, e->i32};
    LLVMValueRef x = ptx(e, LLVMStructTypeInContext(e->context, words, 4, 0),
                         "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];",
                         "=r,=r,=r,=r,r,~{memory}", &address, 1);
    for (unsigned i = 0; i < 4; i++)
        out[i] = element(e, x, i);
}

void store_matrices(struct emit *e, LLVMValueRef address, const LLVMValueRef x[4], bool transposed)
{
    LLVMValueRef args[] = {address, x[0], x[1], x[2], x[3]};
    ptx_void(e,
             transposed ? "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [$0], {$1, $2, $3, $4};"
                        : "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};",
             "r,r,r,r,r,~{memory}", args, 5);
}

/* ---- wgmma ---- */

/* In a cluster an address has the number of its thread block in the bits above, where the descriptor has others. */
LLVMValueRef descriptor(struct emit *e, LLVMValueRef address, uint32_t span_bytes)
{
    LLVMValueRef within = e->p->cluster ? LLVMBuildAnd(e->b, address, imm(e, 0x3ffff), "") : address;
    LLVMValueRef start = LLVMBuildLShr(e->b, within, imm(e, 4), "");
    return LLVMBuildOr(e->b, start, imm(e, (int64_t)(span_bytes / 16) << 16), "");
}

/* x[i] -> x[i] through `text`, which may name further operands behind the 2n. */
static void tie(struct emit *e, const char *text, const char *more_constraints, LLVMValueRef *x, uint32_t n,
                const LLVMValueRef *more, uint32_t n_more)
{
    char constraints[TEXT], *at = constraints;
    LLVMTypeRef types[MOST_TIED];
    LLVMValueRef args[MOST_TIED + 8];
    for (uint32_t i = 0; i < n; i++) {
        types[i] = LLVMTypeOf(x[i]);
        args[i] = x[i];
        at += sprintf(at, "%s=%c", i ? "," : "", types[i] == e->f32 ? 'f' : 'r');
    }
    for (uint32_t i = 0; i < n; i++)
        at += sprintf(at, ",%u", i);
    sprintf(at, "%s,~{memory}", more_constraints);
    for (uint32_t i = 0; i < n_more; i++)
        args[n + i] = more[i];
    LLVMValueRef result = ptx(e, n == 1 ? types[0] : LLVMStructTypeInContext(e->context, types, n, 0), text,
                              constraints, args, n + n_more);
    for (uint32_t i = 0; i < n; i++)
        x[i] = n == 1 ? result : element(e, result, i);
}

void made_here(struct emit *e, LLVMValueRef *x, uint32_t n)
{
    tie(e, "", "", x, n, NULL, 0);
}

static char *accumulators(char *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        at += sprintf(at, "%s$%u", i ? ", " : "{", i);
    return at + sprintf(at, "}");
}

static const char *instruction(struct emit *e, char text[64], uint32_t columns)
{
    const char *type = e->p->shape.io == TG_BF16 ? "bf16" : "f16";
    sprintf(text, "wgmma.mma_async.sync.aligned.m64n%uk16.f32.%s.%s", columns, type, type);
    return text;
}

enum { UPPER = 0x40000040 }; /* of a descriptor: 1024 bytes from 8 rows to the next 8; 128-byte swizzle */

void wgmma_shared(struct emit *e, LLVMValueRef *c, uint32_t columns, LLVMValueRef a, LLVMValueRef b, bool accumulate,
                  bool b_by_columns)
{
    char text[TEXT], name[64], *at = text;
    const uint32_t n = columns / 2;
    at += sprintf(at, "{ .reg .b64 xa, xb; mov.b64 xa, {$%u, %d}; mov.b64 xb, {$%u, %d}; %s ", 2 * n, UPPER, 2 * n + 1,
                  UPPER, instruction(e, name, columns));
    at = accumulators(at, n);
    sprintf(at, ", xa, xb, $%u, 1, 1, 0, %d; }", 2 * n + 2, b_by_columns);
    LLVMValueRef more[] = {a, b, LLVMConstInt(e->i1, accumulate, 0)};
    tie(e, text, ",r,r,b", c, n, more, 3);
}

void wgmma_registers(struct emit *e, LLVMValueRef *c, uint32_t columns, const LLVMValueRef a[4], LLVMValueRef b,
                     bool accumulate, bool b_by_columns)
{
    char text[TEXT], name[64], *at = text;
    const uint32_t n = columns / 2;
    at += sprintf(at, "{ .reg .b64 xb; mov.b64 xb, {$%u, %d}; %s ", 2 * n + 4, UPPER, instruction(e, name, columns));
    at = accumulators(at, n);
    sprintf(at, ", {$%u, $%u, $%u, $%u}, xb, $%u, 1, 1, %d; }", 2 * n, 2 * n + 1, 2 * n + 2, 2 * n + 3, 2 * n + 5,
            b_by_columns);
    LLVMValueRef more[] = {a[0], a[1], a[2], a[3], b, LLVMConstInt(e->i1, accumulate, 0)};
    tie(e, text, ",r,r,r,r,r,b", c, n, more, 6);
}

void wgmma_fence(struct emit *e, LLVMValueRef *x, uint32_t n)
{
    if (n == 0)
        ptx_void(e, "wgmma.fence.sync.aligned;", "~{memory}", NULL, 0);
    else
        tie(e, "wgmma.fence.sync.aligned;", "", x, n, NULL, 0);
}

void wgmma_commit(struct emit *e)
{
    ptx_void(e, "wgmma.commit_group.sync.aligned;", "~{memory}", NULL, 0);
}

void wgmma_wait(struct emit *e, LLVMValueRef *x, uint32_t n, uint32_t pending)
{
    char text[64];
    snprintf(text, sizeof text, "wgmma.wait_group.sync.aligned %u;", pending);
    tie(e, text, "", x, n, NULL, 0);
}
