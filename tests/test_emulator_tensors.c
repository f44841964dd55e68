/* test_emulator_tensors.c - tensor maps, and copies of boxes against loops over the elements. */
#include "emulator/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A box of a tensor of 4-byte words that lie densely in cu.in or cu.out. */
struct box {
    unsigned rank, swizzle; /* bytes of the swizzle's rows, or 0 */
    int dims[5], box[5], steps[5], at[5];
};

static int count(const struct box *b, unsigned i)
{
    return i >= b->rank       ? 1
           : i && b->steps[i] ? (b->box[i] + b->steps[i] - 1) / b->steps[i]
                              : b->box[i];
}

static int words_of(const struct box *b)
{
    int n = 1;
    for (unsigned i = 0; i < b->rank; i++)
        n *= count(b, i);
    return n;
}

/* Which word of global memory the box's word e is, or -1 out of bounds. */
static int global_word(const struct box *b, int e)
{
    int word = 0, stride = 1;
    for (unsigned i = 0; i < b->rank; i++) {
        const int x = b->at[i] + e % count(b, i) * (i && b->steps[i] ? b->steps[i] : 1);
        if (x < 0 || x >= b->dims[i])
            return -1;
        e /= count(b, i);
        word += x * stride;
        stride *= b->dims[i];
    }
    return word;
}

/* Where it is in shared memory, in words. Lines have 128 bytes, units 16; a swizzle whose rows have
 * n units exchanges them by the line's number modulo n. */
static int shared_word(const struct box *b, int e)
{
    const int line = e / 32, unit = e / 4 % 8, n = (int)b->swizzle / 16;
    return line * 32 + (n ? unit ^ (line % n) : unit) * 4 + e % 4;
}

static void print_map(char *s, const struct box *b, const char *base)
{
    s += sprintf(s, "m %s u32 swizzle=%u dims=", base, b->swizzle);
    for (unsigned i = 0; i < b->rank; i++)
        s += sprintf(s, "%d,", b->dims[i]);
    s += sprintf(s, " strides=");
    for (unsigned i = 1, bytes = 4; i < b->rank; i++)
        s += sprintf(s, "%u,", bytes *= (unsigned)b->dims[i - 1]);
    s += sprintf(s, " box=");
    for (unsigned i = 0; i < b->rank; i++)
        s += sprintf(s, "%d,", b->box[i]);
    s += sprintf(s, " steps=");
    for (unsigned i = 0; i < b->rank; i++)
        s += sprintf(s, "%d,", b->steps[i] ? b->steps[i] : 1);
}

/* 128 threads: thread 0 has a barrier at the end of 8 KiB; %rd3 is the map. */
static const char begin[] = "mov.u32 %r3, smem;\nsetp.eq.u32 %p1, %r1, 0;\n"
                            "mov.b64 %rd3, m;\ncvta.param.u64 %rd3, %rd3;\n"
                            "@%p1 mbarrier.init.shared::cta.b64 [%r3+8192], 1;\n"
                            "@%p1 fence.mbarrier_init.release.cluster;\n"
                            "bar.sync 0;\n";

/* Words of the thread: %r1, %r1 + 128 .. below %r9; %r6 goes through shared and %rd6 through global
 * addresses. */
static const char loop[] = "mov.u32 %%r8, %%r1;\n"
                           "loop:\n"
                           "setp.ge.u32 %%p3, %%r8, %d;\n@%%p3 bra end;\n"
                           "shl.b32 %%r6, %%r8, 2;\ncvt.u64.u32 %%rd6, %%r6;\n"
                           "add.u32 %%r6, %%r3, %%r6;\nadd.u64 %%rd6, %%rd6, %%rd%d;\n"
                           "%s\n"
                           "add.u32 %%r8, %%r8, 128;\nbra loop;\nend:\n";

static void run_box(const struct box *b, const char *base, const char *body, uint32_t *out)
{
    char map[512];
    const char *maps[] = {map};
    print_map(map, b, base);
    cu.maps = maps;
    cu.n_maps = 1;
    for (int seed = 1; seed <= MAX_SEEDS; seed++) {
        fresh();
        configure((uint64_t)seed, 0);
        ok(cu.cuMemsetD32_v2(cu.out, 0xffffffff, WORDS));
        char *ptx = make_kernel(body);
        if (seed == 1)
            check_with_ptxas(ptx);
        free(ptx);
        ok(run_body(body, 1, 128, 8192 + 8, out, WORDS));
    }
    cu.n_maps = 0;
}

static char *print_coordinates(char *s, const struct box *b)
{
    for (unsigned i = 0; i < b->rank; i++)
        s += sprintf(s, "%s%d", i ? ", " : "", b->at[i]);
    return s;
}

static void check_load(const struct box *b)
{
    char body[4096], *s = body;
    uint32_t out[WORDS];
    const int n = words_of(b);
    s += sprintf(s, "%s@!%%p1 bra wait;\n", begin);
    s += sprintf(s, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r3+8192], %d;\n", 4 * n);
    s += sprintf(s,
                 "cp.async.bulk.tensor.%ud.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%%r3], [%%rd3, {",
                 b->rank);
    s = print_coordinates(s, b);
    s += sprintf(s, "}], [%%r3+8192];\nwait:\n"
                    "mbarrier.try_wait.parity.shared::cta.b64 %%p2, [%%r3+8192], 0;\n"
                    "@!%%p2 bra wait;\n");
    sprintf(s, loop, n, 2, "ld.shared.u32 %r7, [%r6];\nst.global.u32 [%rd6], %r7;");
    run_box(b, "in", body, out);
    for (int e = 0; e < n; e++) {
        const int from = global_word(b, e);
        if (out[shared_word(b, e)] != (from < 0 ? 0 : (uint32_t)from))
            fail_msg("rank %u, swizzle %u, element %d: %d, not %d", b->rank, b->swizzle, e,
                     (int)out[shared_word(b, e)], from);
    }
}

static void check_store(const struct box *b)
{
    char body[4096], *s = body;
    uint32_t out[WORDS], expected[WORDS];
    const int n = words_of(b);
    s += sprintf(s, "%s", begin);
    s += sprintf(s, loop, n, 1, "ld.global.u32 %r7, [%rd6];\nst.shared.u32 [%r6], %r7;");
    s += sprintf(s, "fence.proxy.async.shared::cta;\nbar.sync 0;\n@!%%p1 bra done;\n");
    s += sprintf(s, "cp.async.bulk.tensor.%ud.global.shared::cta.tile.bulk_group [%%rd3, {",
                 b->rank);
    s = print_coordinates(s, b);
    sprintf(s, "}], [%%r3];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\ndone:\n");
    run_box(b, "out", body, out);
    memset(expected, 0xff, sizeof expected);
    for (int e = 0; e < n; e++)
        if (global_word(b, e) >= 0)
            expected[global_word(b, e)] = (uint32_t)shared_word(b, e);
    for (int i = 0; i < WORDS; i++)
        if (out[i] != expected[i])
            fail_msg("rank %u, swizzle %u, store: word %d is %d, not %d", b->rank, b->swizzle, i,
                     (int)out[i], (int)expected[i]);
}

void test_boxes(void **state)
{
    static const struct box boxes[] = {
        {1, 0, {1000}, {64}, {0}, {100}},
        {1, 0, {1000}, {128}, {0}, {940}},
        {2, 0, {32, 32}, {8, 16}, {0}, {4, 3}},
        {2, 0, {32, 32}, {12, 8}, {0}, {-5, 28}},
        {2, 128, {32, 32}, {32, 16}, {0}, {0, 5}},
        {2, 128, {64, 16}, {32, 16}, {0}, {20, -3}},
        {2, 64, {32, 32}, {16, 32}, {0}, {8, 0}},
        {2, 32, {32, 32}, {8, 32}, {0}, {21, 2}},
        {2, 0, {32, 32}, {8, 16}, {1, 3}, {8, 1}},
        {3, 128, {32, 8, 4}, {32, 4, 3}, {0}, {0, 2, 1}},
        {3, 0, {16, 8, 8}, {4, 5, 3}, {1, 2, 1}, {13, -1, 6}},
        {4, 32, {8, 4, 4, 8}, {8, 2, 2, 4}, {0}, {0, 1, 3, 6}},
        {5, 0, {4, 4, 4, 4, 4}, {4, 3, 2, 2, 2}, {0}, {0, -1, 1, 3, 2}},
        {5, 0, {8, 4, 4, 4, 2}, {8, 3, 3, 2, 2}, {1, 1, 2, 1, 1}, {1, 1, 1, 1, 0}},
    };
    (void)state;
    if (!use_target("sm_90a"))
        skip();
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) {
        check_load(&boxes[i]);
        check_store(&boxes[i]);
    }
}

/* One thing wrong at a time. */
void test_tensor_maps(void **state)
{
    static const struct bad {
        const char *what; /* in the report */
        int type;
        unsigned rank;
        int address;
        uint64_t dims[2], stride;
        uint32_t box[2], steps[2];
        int interleave, swizzle, l2, fill;
    } cases[] = {
        {NULL, 9, 2, 0, {64, 64}, 128, {64, 64}, {1, 1}, 0, 3, 3, 1},
        {NULL, 2, 2, 0, {4, 256}, 16, {4, 256}, {1, 8}, 0, 0, 0, 0},
        {"rank 0", 9, 0, 0, {64, 64}, 128, {64, 64}, {1, 1}, 0, 3, 3, 0},
        {"rank 6", 9, 6, 0, {64, 64}, 128, {64, 64}, {1, 1}, 0, 3, 3, 0},
        {"data type", 30, 2, 0, {64, 64}, 128, {64, 64}, {1, 1}, 0, 3, 3, 0},
        {"global address", 9, 2, 8, {64, 64}, 128, {64, 64}, {1, 1}, 0, 3, 3, 0},
        {"stride 136", 9, 2, 0, {64, 64}, 136, {64, 64}, {1, 1}, 0, 3, 3, 0},
        {"below 2^40", 9, 2, 0, {64, 64}, 1ull << 40, {64, 64}, {1, 1}, 0, 3, 3, 0},
        {"dimension 1 has 0", 9, 2, 0, {64, 0}, 128, {64, 64}, {1, 1}, 0, 3, 3, 0},
        {"257 elements", 9, 2, 0, {64, 64}, 128, {64, 257}, {1, 1}, 0, 3, 3, 0},
        {"0 elements", 9, 2, 0, {64, 64}, 128, {64, 0}, {1, 1}, 0, 3, 3, 0},
        {"not a multiple of 16", 9, 2, 0, {64, 64}, 128, {60, 64}, {1, 1}, 0, 0, 3, 0},
        {"the swizzle's 128", 9, 2, 0, {128, 64}, 256, {72, 64}, {1, 1}, 0, 3, 3, 0},
        {"the swizzle's 64", 9, 2, 0, {64, 64}, 128, {64, 64}, {1, 1}, 0, 2, 3, 0},
        {"the swizzle's 32", 9, 2, 0, {64, 64}, 128, {64, 64}, {1, 1}, 0, 1, 3, 0},
        {"element stride 9", 9, 2, 0, {64, 64}, 128, {64, 64}, {1, 9}, 0, 3, 3, 0},
        {"element stride 0", 9, 2, 0, {64, 64}, 128, {64, 64}, {1, 0}, 0, 3, 3, 0},
        {"interleave 3", 9, 2, 0, {64, 64}, 128, {64, 64}, {1, 1}, 3, 3, 3, 0},
        {"swizzle 9", 9, 2, 0, {64, 64}, 128, {64, 64}, {1, 1}, 0, 9, 3, 0},
        {"L2 promotion", 9, 2, 0, {64, 64}, 128, {64, 64}, {1, 1}, 0, 3, 4, 0},
        {"fill 1 of elements that are int32", 3, 2, 0, {64, 64}, 256, {32, 64}, {1, 1}, 0, 3, 3, 1},
    };
    _Alignas(64) char map[192];
    (void)state;
    if (!use_target("sm_90a"))
        skip();
    fresh();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct bad *c = &cases[i];
        const int result = cu.cuTensorMapEncodeTiled(
            map, c->type, c->rank, cu.in + (unsigned)c->address, c->dims, &c->stride, c->box,
            c->steps, c->interleave, c->swizzle, c->l2, c->fill);
        assert_int_equal(result, c->what ? 1 : 0);
        if (c->what && cu.is_emulated && !strstr(error_text(1), c->what))
            fail_msg("%s: %s", c->what, error_text(1));
    }
    const struct bad *c = &cases[0];
    assert_int_equal(cu.cuTensorMapEncodeTiled(map + 16, c->type, c->rank, cu.in, c->dims,
                                               &c->stride, c->box, c->steps, 0, c->swizzle, 0, 0),
                     1);
}

/* bf16 rows of which 3 elements are inside; fill with NaN. Not all bits of a NaN are told. */
void test_nan_fill(void **state)
{
    const char *maps[] = {"m in bf16 swizzle=0 dims=1027,1 strides=4096 box=8,2 nan"};
    const char wait[] = "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+8192], 0;\n"
                        "@!%p2 bra wait;\n";
    char body[4096], *s = body;
    uint32_t out[8];
    (void)state;
    if (!use_target("sm_90a"))
        skip();
    cu.maps = maps;
    cu.n_maps = 1;
    fresh();
    s += sprintf(s, "%s@!%%p1 bra wait;\n", begin);
    s += sprintf(s,
                 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r3+8192], 32;\n"
                 "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%%r3], [%%rd3, {1024, 0}], [%%r3+8192];\n");
    s += sprintf(s, "%s", wait);
    sprintf(s, loop, 8, 2, "ld.shared.u32 %r7, [%r6];\nst.global.u32 [%rd6], %r7;");
    ok(run_body(body, 1, 128, 8192 + 8, out, 8));
    assert_int_equal(out[0], 512);
    assert_int_equal(out[1] & 0xffff, 513);
    assert_true((out[1] >> 16 & 0x7f80) == 0x7f80 && out[1] >> 16 & 0x7f);
    for (int i = 2; i < 8; i++)
        assert_true((out[i] & 0x7f80) == 0x7f80 && (out[i] & 0x7f));
}
