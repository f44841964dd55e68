/* lower/kernel.c - the frame of a kernel: parameters, grid, addresses, and the walk over the plan. */
#include "compiler/plan_channel.h"
#include "compiler/plan_program.h"
#include "compiler/plan_thread.h"
#include "compiler/plan_tile.h"
#include "compiler/plan_walk.h"
#include "lower/channel.h"
#include "lower/matrix.h"
#include "lower/walk.h"

#include <stdlib.h>
#include <string.h>

LLVMValueRef argument(struct emit *e, tg_arg_kind kind, uint32_t index, uint32_t axis)
{
    index = kind == TG_ARG_STRIDE ? plan_strides_of(e->p, index) : index;
    for (uint32_t i = 0; i < e->n_args; i++)
        if (e->described[i].kind == kind && e->described[i].index == index && e->described[i].axis == axis)
            return e->args[i];
    return NULL;
}

void debug_line(struct emit *e, int stmt)
{
    if (stmt >= 0)
        e->line = e->p->algorithm->body[stmt].line;
    const unsigned line = e->line > 0 ? (unsigned)e->line : 1;
    LLVMSetCurrentDebugLocation2(e->b, LLVMDIBuilderCreateDebugLocation(e->context, line, 0, e->debug_scope, NULL));
}

/* ---- operations ---- */

static void load(struct emit *e, const struct op *op)
{
    emit_load(e, op->v);
}

static void commit(struct emit *e, const struct op *op)
{
    (void)op;
    call0(e, "llvm.nvvm.cp.async.commit.group");
}

static void wait(struct emit *e, const struct op *op)
{
    call1(e, "llvm.nvvm.cp.async.wait.group", imm(e, op->n));
}

static void meet(struct emit *e, const struct op *op)
{
    if (op->flags & OP_CAREFUL)
        careful_barrier(e, op);
    else
        barrier(e);
}

static void issue(struct emit *e, const struct op *op)
{
    emit_issue(e, op->n);
}

static void begin_loads(struct emit *e, const struct op *op)
{
    if (e->p->thread_dim)
        fetch_tokens(e, &e->p->nests[op->n]);
    else
        emit_prologue(e, op->n);
}

static void total(struct emit *e, const struct op *op)
{
    (e->p->thread_dim ? emit_total : emit_member_sum)(e, op);
}

static void invert(struct emit *e, const struct op *op)
{
    if (e->p->thread_dim)
        set(e, e->registers[op->v][0], real(e, 1)); /* of one token */
    else
        emit_solve(e, op);
}

static void compose(struct emit *e, const struct op *op)
{
    (e->p->transition ? compose_by_values : compose_segments)(e, op);
}

typedef void emit_fn(struct emit *e, const struct op *op);

/* None: nothing is emitted of it. */
static emit_fn *const operations[OP_N_KINDS] = {
    [OP_LOAD] = load,
    [OP_COMMIT] = commit,
    [OP_WAIT] = wait,
    [OP_BARRIER] = meet,
    [OP_ISSUE] = issue,
    [OP_PROLOGUE] = begin_loads,
    [OP_ZERO] = emit_zero,
    [OP_COPY] = emit_zero,
    [OP_INIT] = emit_init,
    [OP_MAP] = emit_map,
    [OP_SCAN] = emit_scan,
    [OP_TOTAL] = total,
    [OP_CONTRACT] = careful_contract,
    [OP_ADD_UP] = emit_add_up,
    [OP_SOLVE] = invert,
    [OP_DOT] = emit_dot,
    [OP_DECAY] = emit_decay,
    [OP_WALK] = walk_thread,
    [OP_COMPOSE] = compose,
    [OP_STORE] = emit_store,
};

static void emit_op(struct emit *e, const struct op *op)
{
    debug_line(e, op->stmt);
    if (is_of_channels(e->p, op))
        emit_channels(e, op);
    else if (operations[op->kind])
        operations[op->kind](e, op);
    if (op->kind == OP_MAP || op->kind == OP_DOT) /* a copy is the same number */
        put_beside(e, op->v);
}

void emit_ops(struct emit *e, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++) {
        if (e->p->ops[i].when != WHEN_EACH)
            continue;
        if (e->p->ops[i].kind == OP_NEST)
            i = e->p->thread_dim ? emit_thread_nest(e, i) : emit_nest(e, i);
        else
            emit_op(e, &e->p->ops[i]);
    }
}

/* Of a head, and the sum; or of this head and the next. */
static bool has_two(const struct plan *p, const struct value *v)
{
    return (plan_is_made_tile(v) && v->summed) ||
           (v->space == SPACE_FRAGMENT && v->by_head && !plan_is_owned(p, v) && plan_is_ahead(p));
}

/* How many registers a value has: elements of fragments, (hi, lo) of everything else. */
static uint32_t count_registers(const struct plan *p, const struct value *v)
{
    if (plan_has_elements_of_rows(p, v))
        return WALK_ROW_REGISTERS;
    if (p->groups && (v->space == SPACE_FRAGMENT || plan_is_made_tile(v)))
        return walk_registers(p, v) * (v == &p->values[p->state] ? p->tiles * plan_heads_in_columns(p)
                                       : has_two(p, v)           ? 2
                                                                 : 1);
    if (v->space == SPACE_PARTS && v->late)
        return 2 * (v->by_head ? p->heads : 1);
    if (plan_is_of_warp(v) || (v->space == SPACE_PARTS && !plan_is_gathered(v)))
        return 4; /* of two positions a lane, while they are made */
    if (v->space == SPACE_FRAGMENT)
        return plan_fragment_elements(p, v);
    if (v->space == SPACE_ROWS)
        return 2 * v->extent[0] / (8 * p->warps_m);
    if (v->space == SPACE_CHANNEL)
        return (v->n_dims == 2 ? CHANNEL_ROWS : 1) * p->block[TG_DQK] / 32;
    return v->space == SPACE_THREAD || v->space == SPACE_UNIFORM ? 2 * plan_held_count(p, v) : 0;
}

LLVMValueRef *new_registers(struct emit *e, uint32_t v)
{
    const uint32_t n = count_registers(e->p, &e->p->values[v]);
    LLVMValueRef *registers = n ? calloc(n, sizeof *registers) : NULL;
    for (uint32_t r = 0; registers && r < n; r++) {
        registers[r] = local(e, e->f32, plan_tensor(e->p, &e->p->values[v])->name);
        set(e, registers[r], real(e, 0));
    }
    return registers;
}

/* Registers of every value that lives in them; of sums in thread kernels also the fp64 sum. */
static void emit_registers(struct emit *e)
{
    const struct plan *p = e->p;
    for (uint32_t i = 0; i < p->n_values; i++)
        e->registers[i] = new_registers(e, i);
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct op *op = &p->ops[i];
        if ((op->kind != OP_SCAN && op->kind != OP_TOTAL) || e->total[op->v])
            continue;
        const uint32_t n = plan_held_count(p, &p->values[op->v]);
        e->total[op->v] = calloc(n, sizeof *e->total[op->v]);
        for (uint32_t r = 0; e->total[op->v] && r < n; r++)
            e->total[op->v][r] = local(e, e->f64, "total");
        zero_thread(e, &(struct op){.kind = OP_ZERO, .stmt = op->stmt, .v = op->v});
    }
}

static void leave_unless(struct emit *e, LLVMValueRef condition)
{
    LLVMBasicBlockRef work = LLVMAppendBasicBlockInContext(e->context, e->function, "work");
    LLVMBasicBlockRef leave = LLVMAppendBasicBlockInContext(e->context, e->function, "leave");
    LLVMBuildCondBr(e->b, condition, work, leave);
    LLVMPositionBuilderAtEnd(e->b, leave);
    LLVMBuildRetVoid(e->b);
    LLVMPositionBuilderAtEnd(e->b, work);
}

/* A block of rows behind the end of a short chunk has nothing to do, nor has a slot without a chunk. Who walks writes the states of a
 * sequence without tokens. */
static void emit_early_exit(struct emit *e)
{
    if (plan_chunks_together(e->p) > 1)
        leave_unless(e, less(e, e->at.start[TG_CHUNK], e->at.chunks));
    if (plan_counts_tokens(e->p))
        leave_unless(e, less(e, imm(e, 0), e->at.tokens));
    if (e->p->segment && e->p->shape.packed) /* an empty sequence has one */
        leave_unless(e, LLVMBuildOr(e->b, less(e, e->at.start[TG_SEG], e->at.chunks),
                                    LLVMBuildICmp(e->b, LLVMIntEQ, e->at.start[TG_SEG], imm(e, 0), ""), ""));
    if (e->p->makes_segments)
        leave_unless(e, walk_is_inner(e));
    if (e->p->segment && e->p->finals_only)
        leave_unless(e, LLVMBuildNot(e->b, walk_is_inner(e), ""));
    if (e->p->makes_segments && e->p->transition) /* the first segment begins with the initial state */
        leave_unless(e, LLVMBuildOr(e->b, less(e, imm(e, 0), e->at.start[TG_SEG]),
                                    LLVMBuildNot(e->b, walk_is_transition(e), ""), ""));
    if (tg_row_has_ends(e->p->row) && e->p->shape.packed) /* which chunks are last ones the grid does not know */
        leave_unless(e, is_last_of_segment(e));
    if (e->p->shape.packed && e->p->row->row[TG_CHUNK].role == TG_ROLE_P)
        leave_unless(e, less(e, imm(e, 0), e->at.length));
    for (uint32_t d = TG_LQ; d <= TG_LKV; d++)
        if (e->p->row->row[d].role == TG_ROLE_P && e->p->row->row[TG_CHUNK].role != TG_ROLE_W)
            leave_unless(e, less(e, e->at.start[d], e->at.length));
}

/* Of a sequence without slots nothing is read or written. */
static void leave_padding(struct emit *e)
{
    const bool has_padding = e->p->shape.pooled && e->p->shape.pooled < TG_POOL_TOKENS;
    if (has_padding && e->p->row->row[TG_BATCH].role == TG_ROLE_NONE)
        leave_unless(e, LLVMBuildNot(e->b, is_padding(e, e->batch), ""));
}

static void emit_when(struct emit *e, enum when when)
{
    for (uint32_t i = 0; i < e->p->n_ops; i++)
        if (e->p->ops[i].when == when)
            emit_op(e, &e->p->ops[i]);
}

/* The same number, but LLVM does not know it. */
LLVMValueRef opaque(struct emit *e, LLVMValueRef x)
{
    LLVMTypeRef type = LLVMFunctionType(e->i32, &e->i32, 1, 0);
    LLVMValueRef mov = LLVMGetInlineAsm(type, "mov.b32 $0, $1;", 15, "=r,r", 4, 1, 0, LLVMInlineAsmDialectATT, 0);
    return LLVMBuildCall2(e->b, type, mov, &x, 1, "");
}

void find_thread(struct emit *e, LLVMValueRef tid)
{
    e->tid = tid;
    e->lane = modulo(e, e->tid, imm(e, 32));
    e->warp = divide(e, e->tid, imm(e, 32));
    e->quad_row = divide(e, e->lane, imm(e, 4));
    e->quad_column = modulo(e, e->lane, imm(e, 4));
    e->owner = e->tid;
    e->sharer = imm(e, 0);
    if (e->p->sharers > 1) { /* neighbours have neighbouring elements: their loads are one */
        const uint32_t owners = 32 / e->p->sharers;
        e->owner = add(e, mul(e, e->warp, imm(e, owners)), modulo(e, e->lane, imm(e, owners)));
        e->sharer = divide(e, e->lane, imm(e, owners));
    }
}

/* The kernel's work for every head of a group, one after the other. What every head computes alike is not to be
 * computed once and kept: registers are what is short. */
static void emit_members(struct emit *e, LLVMValueRef batch, LLVMValueRef head)
{
    emit_when(e, WHEN_BEFORE);
    LLVMValueRef member, tid = e->tid;
    const struct place outside = e->at;
    const struct counted l = loop_begin(e, imm(e, group_of(&e->p->shape)), &member);
    e->at.start[TG_MEMBER] = member;
    find_thread(e, opaque(e, e->tid));
    LLVMValueRef *known[] = {&e->at.start[TG_LQ],    &e->at.start[TG_LKV], &e->at.start[TG_DQK],
                             &e->at.start[TG_CHUNK], &e->at.token,         &e->at.length};
    for (uint32_t i = 0; i < sizeof known / sizeof *known; i++)
        *known[i] = LLVMIsConstant(*known[i]) ? *known[i] : opaque(e, *known[i]);
    emit_bases(e, opaque(e, batch), opaque(e, head));
    emit_ops(e, 0, e->p->n_ops);
    call1(e, "llvm.nvvm.cp.async.wait.group", imm(e, 0));
    barrier(e); /* all have left the rings that the next head fills */
    loop_end(e, &l, 1);
    find_thread(e, tid);
    e->at = outside;
    emit_bases(e, batch, head);
    emit_when(e, WHEN_AFTER);
}

/* One thread block waits for the kernel beside which this one is, so that who waits for this one has waited for both. */
static void wait_at_end(struct emit *e)
{
    LLVMValueRef block = call0(e, "llvm.nvvm.read.ptx.sreg.ctaid.x");
    LLVMBasicBlockRef after = begin_if(e, LLVMBuildICmp(e->b, LLVMIntEQ, block, imm(e, 0), ""));
    wait_for_kernels(e);
    end_if(e, after);
}

static void emit_body(struct emit *e)
{
    LLVMValueRef batch, head;
    for (uint32_t d = 0; d < TG_N_DIMS; d++)
        e->at.start[d] = imm(e, 0);
    find_thread(e, call0(e, "llvm.nvvm.read.ptx.sreg.tid.x"));
    if (plan_overlaps(e->p) && !plan_begins_beside(e->p))
        wait_for_kernels(e); /* it is launched before they have ended: tg_kernel.overlap */
    if (plan_lets_next_begin(e->p))
        let_next_begin(e);
    if (plan_clears_turns(e->p))
        clear_numbers(e, TILE_TURN);
    if (plan_clears_sums(e->p))
        clear_numbers(e, TILE_SUMMED);
    emit_grid(e, &batch, &head);
    emit_early_exit(e);
    emit_bases(e, batch, head);
    e->batch = batch;
    e->head = head;
    leave_padding(e);
    emit_registers(e);
    if (e->p->groups)
        emit_walk(e, batch, head);
    else if (e->p->by_member)
        emit_members(e, batch, head);
    else
        emit_ops(e, 0, e->p->n_ops);
    if (plan_begins_beside(e->p))
        wait_at_end(e);
    LLVMBuildRetVoid(e->b);
}

static void make_types(struct emit *e)
{
    e->i1 = LLVMInt1TypeInContext(e->context);
    e->i16 = LLVMInt16TypeInContext(e->context);
    e->i32 = LLVMInt32TypeInContext(e->context);
    e->i64 = LLVMInt64TypeInContext(e->context);
    e->f32 = LLVMFloatTypeInContext(e->context);
    e->f64 = LLVMDoubleTypeInContext(e->context);
    e->half = LLVMHalfTypeInContext(e->context);
    e->bfloat = LLVMBFloatTypeInContext(e->context);
    e->v2bf16 = LLVMVectorType(e->bfloat, 2);
    e->v2f16 = LLVMVectorType(e->half, 2);
    e->v2f32 = LLVMVectorType(e->f32, 2);
    e->v2i32 = LLVMVectorType(e->i32, 2);
    e->global = LLVMPointerTypeInContext(e->context, 1);
    e->shared = LLVMPointerTypeInContext(e->context, 3);
}

static void add_attribute(struct emit *e, const char *key, uint32_t value)
{
    char text[16];
    uint32_t n = 0, digits = value;
    do
        text[sizeof text - 1 - n++] = (char)('0' + digits % 10);
    while (digits /= 10);
    LLVMAttributeRef a = LLVMCreateStringAttribute(e->context, key, (unsigned)strlen(key), text + sizeof text - n, n);
    LLVMAddAttributeAtIndex(e->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, a);
}

/* Loads and stores are as wide as they can be when they are emitted, but for those of fp32 fragments. LLVM's pass that
 * looks for more takes a third of the time of making code of a walk; it passes over functions that have this attribute,
 * and has no other switch but one of the whole process. */
static void leave_widths(struct emit *e)
{
    if (e->p->shape.io == TG_F32)
        return;
    const char name[] = "noimplicitfloat";
    const unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof name - 1);
    LLVMAddAttributeAtIndex(e->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(e->context, kind, 0));
}

/* A tensor map: 128 bytes among the parameters, whose address the instructions take. */
static void pass_by_value(struct emit *e, uint32_t i)
{
    const unsigned byval = LLVMGetEnumAttributeKindForName("byval", 5),
                   align = LLVMGetEnumAttributeKindForName("align", 5);
    LLVMTypeRef bytes = LLVMArrayType2(LLVMInt8TypeInContext(e->context), 128);
    LLVMAddAttributeAtIndex(e->function, i + 1, LLVMCreateTypeAttribute(e->context, byval, bytes));
    LLVMAddAttributeAtIndex(e->function, i + 1, LLVMCreateEnumAttribute(e->context, align, 64));
    LLVMAddAttributeAtIndex(e->function, i + 1, LLVMCreateStringAttribute(e->context, "nvvm.grid_constant", 18, "", 0));
}

static void make_function(struct emit *e)
{
    const struct plan *p = e->p;
    const tg_arg_desc *args = e->described;
    LLVMTypeRef types[TG_MAX_ARGS];
    const uint32_t n = e->n_args = plan_args(p, e->described);
    for (uint32_t i = 0; i < n; i++)
        types[i] = args[i].kind == TG_ARG_POINTER  ? e->global
                   : args[i].kind == TG_ARG_STRIDE ? e->i64
                   : args[i].kind == TG_ARG_SIZE   ? e->i32
                   : args[i].kind == TG_ARG_MAP    ? LLVMPointerTypeInContext(e->context, 0)
                                                   : e->f32;
    e->function = LLVMAddFunction(e->module, p->name, LLVMFunctionType(LLVMVoidTypeInContext(e->context), types, n, 0));
    LLVMSetFunctionCallConv(e->function, LLVMPTXKernelCallConv);
    add_attribute(e, "nvvm.reqntid", p->threads * plan_chunks_together(p));
    leave_widths(e);
    for (uint32_t i = 0; i < n; i++)
        if (args[i].kind == TG_ARG_MAP)
            pass_by_value(e, i);
    if (p->resident || p->row->blocks_per_sm)
        add_attribute(e, "nvvm.minctasm", p->resident ? p->resident : p->row->blocks_per_sm);
    for (uint32_t i = 0; i < n; i++)
        e->args[i] = LLVMGetParam(e->function, i);
    e->arena = LLVMAddGlobalInAddressSpace(e->module, LLVMArrayType2(LLVMInt8TypeInContext(e->context), 0),
                                           "tegula_shared", 3);
    LLVMSetLinkage(e->arena, LLVMExternalLinkage);
    LLVMSetAlignment(e->arena, 1024);
}

/* The name of a file as it may stand in quotes in PTX. */
static void quote(const char *file, char *text, size_t size)
{
    size_t n = 0;
    for (; file[n] && n + 1 < size; n++)
        text[n] = file[n] == '"' || file[n] == '\\' || (unsigned char)file[n] < ' ' || file[n] == 127 ? '_' : file[n];
    text[n] = '\0';
}

/* Line information: every statement's line in the user's C file, so that ncu and ptxas point there. */
static void make_debug(struct emit *e)
{
    char file[1024];
    quote(e->p->algorithm->file ? e->p->algorithm->file : "unknown.c", file, sizeof file);
    e->debug = LLVMCreateDIBuilder(e->module);
    LLVMMetadataRef f = LLVMDIBuilderCreateFile(e->debug, file, strlen(file), "", 0);
    LLVMDIBuilderCreateCompileUnit(
        e->debug, LLVMDWARFSourceLanguageC11, f, "tegula", 6, 1, "", 0, 0, "", 0,
        (LLVMDWARFEmissionKind)3 /* DebugDirectivesOnly: .loc lines without ", debug", which would stop ptxas optimising; missing in the C enum */
        ,
        0, 0, 0, "", 0, "", 0);
    LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(e->debug, f, NULL, 0, LLVMDIFlagZero);
    e->debug_scope = LLVMDIBuilderCreateFunction(e->debug, f, e->p->name, strlen(e->p->name), "", 0, f, 1, type, 0, 1,
                                                 1, LLVMDIFlagZero, 1);
    LLVMSetSubprogram(e->function, e->debug_scope);
    LLVMValueRef version = LLVMConstInt(e->i32, LLVMDebugMetadataVersion(), 0);
    LLVMAddModuleFlag(e->module, LLVMModuleFlagBehaviorWarning, "Debug Info Version", 18, LLVMValueAsMetadata(version));
}

/* A product that a sum takes may be rounded once, with it: lanes that have channels issue for most of their time. */
static void allow_contraction(struct emit *e)
{
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(e->function); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
            const LLVMOpcode op = LLVMGetInstructionOpcode(i);
            if (op == LLVMFMul || op == LLVMFAdd || op == LLVMFSub)
                LLVMSetFastMathFlags(i, LLVMFastMathAllowContract);
        }
}

bool lower_plan(const struct plan *p, bool keep_llvm, struct lowered *out)
{
    struct emit *e = calloc(1, sizeof *e);
    if (!e)
        return false;
    e->p = p;
    e->context = LLVMContextCreate();
    e->module = LLVMModuleCreateWithNameInContext(p->name, e->context);
    e->b = LLVMCreateBuilderInContext(e->context);
    make_types(e);
    make_function(e);
    make_debug(e);
    e->entry = LLVMAppendBasicBlockInContext(e->context, e->function, "entry");
    LLVMPositionBuilderAtEnd(e->b, LLVMAppendBasicBlockInContext(e->context, e->function, "begin"));
    LLVMBasicBlockRef begin = LLVMGetInsertBlock(e->b);
    debug_line(e, -1);
    emit_body(e);
    LLVMPositionBuilderAtEnd(e->b, e->entry);
    LLVMBuildBr(e->b, begin);
    LLVMDIBuilderFinalize(e->debug);
    if (p->spreads)
        allow_contraction(e);
    const bool ok = emit_finish(e, keep_llvm, out);
    for (uint32_t i = 0; i < p->n_values; i++) {
        free(e->registers[i]);
        free(e->total[i]);
    }
    if (!e->abandoned) {
        LLVMDisposeDIBuilder(e->debug);
        LLVMDisposeBuilder(e->b);
        LLVMDisposeModule(e->module);
        LLVMContextDispose(e->context);
    }
    free(e);
    return ok;
}
