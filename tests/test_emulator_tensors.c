/* test_emulator_tensors.c - tensor maps, and copies of boxes against loops over the elements. */
#include "emulator/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A box of a tensor that lies densely in cu.in or cu.out. "load|store|add TYPE dims= box= at=", and
 * if need be "steps= swizzle=" (bytes of the swizzle's rows). */
struct box {
    char type[8];
    int bytes; /* of an element */
    unsigned rank;
    int swizzle;
    int64_t dims[5], box[5], steps[5], at[5];
};

static int count(const struct box *b, unsigned i)
{
    return (int)(i >= b->rank ? 1 : i ? (b->box[i] + b->steps[i] - 1) / b->steps[i] : b->box[i]);
}

static int bytes_of(const struct box *b)
{
    int n = b->bytes;
    for (unsigned i = 0; i < b->rank; i++)
        n *= count(b, i);
    return n;
}

/* Which element of global memory the box's element e is, or -1 out of bounds. */
static int global_element(const struct box *b, int e)
{
    int64_t element = 0, stride = 1;
    for (unsigned i = 0; i < b->rank; i++) {
        const int64_t x = b->at[i] + e % count(b, i) * (i ? b->steps[i] : 1);
        if (x < 0 || x >= b->dims[i])
            return -1;
        e /= count(b, i);
        element += x * stride;
        stride *= b->dims[i];
    }
    return (int)element;
}

/* Where it is in shared memory, in bytes. Lines have 128 bytes, units 16; a swizzle whose rows have
 * n units exchanges them by the line's number modulo n. */
static int shared_byte(const struct box *b, int e)
{
    const int at = e * b->bytes, line = at / 128, unit = at / 16 % 8, n = b->swizzle / 16;
    return line * 128 + (n ? unit ^ (line % n) : unit) * 16 + at % 16;
}

static struct box read_box(const char *text)
{
    struct box b = {.bytes = 4, .swizzle = read_key(text, " swizzle=", 0)};
    assert_int_equal(sscanf(text, "%*s %7s", b.type), 1);
    if (strchr(b.type, '8'))
        b.bytes = 1;
    else if (strstr(b.type, "16"))
        b.bytes = 2;
    else if (strstr(b.type, "64"))
        b.bytes = 8;
    read_list(text, " dims=", b.dims, 0);
    read_list(text, " box=", b.box, 0);
    read_list(text, " steps=", b.steps, 1);
    read_list(text, " at=", b.at, 0);
    while (b.rank < 5 && b.dims[b.rank])
        b.rank++;
    return b;
}

static char *print_list(char *s, const char *key, const int64_t *list, unsigned n)
{
    s += sprintf(s, " %s=", key);
    for (unsigned i = 0; i < n; i++)
        s += sprintf(s, "%d,", (int)list[i]);
    return s;
}

static void print_map(char *s, const struct box *b, const char *base)
{
    int64_t strides[4];
    for (unsigned i = 0; i + 1 < b->rank; i++)
        strides[i] = b->dims[i] * (i ? strides[i - 1] : b->bytes);
    s += sprintf(s, "m %s %s swizzle=%d", base, b->type, b->swizzle);
    s = print_list(s, "dims", b->dims, b->rank);
    s = print_list(s, "strides", strides, b->rank - 1);
    s = print_list(s, "box", b->box, b->rank);
    print_list(s, "steps", b->steps, b->rank);
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

/* What the two buffers hold before the kernel, and out after it. */
union buffer {
    uint32_t words[WORDS];
    unsigned char bytes[4 * WORDS];
};

static void run_box(const struct box *b, const char *text, const char *base, const char *body, const union buffer *in,
                    union buffer *out)
{
    const union buffer before = *out;
    char map[512];
    const char *maps[] = {map};
    print_map(map, b, base);
    cu.maps = maps;
    cu.n_maps = 1;
    for (int seed = 1; seed <= seed_count(); seed++) {
        fresh();
        configure((uint64_t)seed, 0);
        ok(cu.cuMemcpyHtoD_v2(cu.in, in, sizeof *in));
        ok(cu.cuMemcpyHtoD_v2(cu.out, &before, sizeof before));
        char *ptx = make_kernel(body);
        if (seed == 1)
            check_with_ptxas(ptx);
        free(ptx);
        const int result = run_body(body, 1, 128, 8192 + 8, out->words, WORDS);
        if (result)
            fail_msg("%s: %d: %s", text, result, error_text(result));
    }
    cu.n_maps = 0;
}

static char *print_coordinates(char *s, const struct box *b)
{
    for (unsigned i = 0; i < b->rank; i++)
        s += sprintf(s, "%s%d", i ? ", " : "", (int)b->at[i]);
    return s;
}

/* Fails unless each element of out, those of the type's size, is as expected. */
static void compare(const struct box *b, const char *text, const union buffer *out, const union buffer *expected)
{
    for (int i = 0; i < 4 * WORDS; i++)
        if (out->bytes[i] != expected->bytes[i])
            fail_msg("%s: byte %d, of element %d, is 0x%x, not 0x%x", text, i, i / b->bytes, out->bytes[i],
                     expected->bytes[i]);
}

static void check_load(const struct box *b, const char *text, const union buffer *in)
{
    char body[4096], *s = body;
    union buffer out, expected;
    const int n = bytes_of(b);
    s += sprintf(s, "%s@!%%p1 bra wait;\n", begin);
    s += sprintf(s, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r3+8192], %d;\n", n);
    s += sprintf(s,
                 "cp.async.bulk.tensor.%ud.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%%r3], [%%rd3, {",
                 b->rank);
    s = print_coordinates(s, b);
    s += sprintf(s, "}], [%%r3+8192];\nwait:\n"
                    "mbarrier.try_wait.parity.shared::cta.b64 %%p2, [%%r3+8192], 0;\n"
                    "@!%%p2 bra wait;\n");
    sprintf(s, loop, n / 4, 2, "ld.shared.u32 %r7, [%r6];\nst.global.u32 [%rd6], %r7;");
    memset(&out, 0xff, sizeof out);
    expected = out;
    for (int e = 0; e < n / b->bytes; e++) {
        const int from = global_element(b, e);
        unsigned char *to = expected.bytes + shared_byte(b, e);
        if (from < 0)
            memset(to, 0, (size_t)b->bytes);
        else
            memcpy(to, in->bytes + from * b->bytes, (size_t)b->bytes);
    }
    run_box(b, text, "in", body, in, &out);
    compare(b, text, &out, &expected);
}

/* The type's bits of a small number. */
static uint64_t encode(const char *type, unsigned x)
{
    const float f = (float)x;
    const double d = (double)x;
    uint32_t u;
    uint64_t bits;
    memcpy(&u, &f, sizeof u);
    memcpy(&bits, &d, sizeof bits);
    if (!strcmp(type, "f16")) /* rebias the exponent */
        return x ? (u >> 13) - (112u << 10) : 0;
    return !strcmp(type, "f32") ? u : !strcmp(type, "bf16") ? u >> 16 : *type == 'f' ? bits : x;
}

/* Stores, or adds to numbers that are there. */
static void check_store(const struct box *b, const char *text, const union buffer *in, bool adds)
{
    char body[4096], *s = body;
    union buffer from = *in, out, expected;
    const int n = bytes_of(b);
    const size_t size = (size_t)b->bytes;
    s += sprintf(s, "%s", begin);
    s += sprintf(s, loop, n / 4, 1, "ld.global.u32 %r7, [%rd6];\nst.shared.u32 [%r6], %r7;");
    s += sprintf(s, "fence.proxy.async.shared::cta;\nbar.sync 0;\n@!%%p1 bra done;\n");
    s += sprintf(s, "cp%s.async.bulk.tensor.%ud.global.shared::cta%s.tile.bulk_group [%%rd3, {", adds ? ".reduce" : "",
                 b->rank, adds ? ".add" : "");
    s = print_coordinates(s, b);
    sprintf(s, "}], [%%r3];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\ndone:\n");
    memset(&out, 0xff, sizeof out);
    for (unsigned i = 0; i < sizeof out / size && adds; i++) {
        memcpy(from.bytes + i * size, (uint64_t[]){encode(b->type, i % 50)}, size);
        memcpy(out.bytes + i * size, (uint64_t[]){encode(b->type, i % 37)}, size);
    }
    expected = out;
    for (int e = 0; e < n / b->bytes; e++) {
        const int to = global_element(b, e), at = shared_byte(b, e) / b->bytes;
        if (to >= 0 && adds)
            memcpy(expected.bytes + to * b->bytes, (uint64_t[]){encode(b->type, (unsigned)(to % 37 + at % 50))}, size);
        else if (to >= 0)
            memcpy(expected.bytes + to * b->bytes, from.bytes + at * b->bytes, size);
    }
    run_box(b, text, "out", body, &from, &out);
    compare(b, text, &out, &expected);
}

void check_box(const char *text)
{
    const struct box b = read_box(text);
    union buffer in;
    for (uint32_t i = 0; i < WORDS; i++)
        in.words[i] = i * 0x9e3779b1u;
    if (!strncmp(text, "load ", 5))
        check_load(&b, text, &in);
    else
        check_store(&b, text, &in, !strncmp(text, "add ", 4));
}

/* One thing wrong at a time. */
void test_tensor_maps(void *unused)
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
    (void)unused;
    if (!use_target("sm_90a"))
        skip();
    fresh();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct bad *c = &cases[i];
        const int result =
            cu.cuTensorMapEncodeTiled(map, c->type, c->rank, cu.in + (unsigned)c->address, c->dims, &c->stride, c->box,
                                      c->steps, c->interleave, c->swizzle, c->l2, c->fill);
        tap_expect(result == (c->what ? 1 : 0), "case %zu, %s: the result is %d", i, c->what ? c->what : "a good map",
                   result);
        if (c->what && cu.is_emulated && !strstr(error_text(1), c->what))
            fail_msg("%s: %s", c->what, error_text(1));
    }
    /* The manual wants multiples of 64; the driver of an H200 takes this. */
    const struct bad *c = &cases[0];
    assert_int_equal(cu.cuTensorMapEncodeTiled(map + 16, c->type, c->rank, cu.in, c->dims, &c->stride, c->box, c->steps,
                                               0, c->swizzle, 0, 0),
                     cu.is_emulated);
}

/* bf16 rows of which 3 elements are inside; fill with NaN. Not all bits of a NaN are told. */
void test_nan_fill(void *unused)
{
    const char *maps[] = {"m in bf16 swizzle=0 dims=1027,1 strides=4096 box=8,2 nan"};
    const char wait[] = "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+8192], 0;\n"
                        "@!%p2 bra wait;\n";
    char body[4096], *s = body;
    uint32_t out[8];
    (void)unused;
    if (!use_target("sm_90a"))
        skip();
    cu.maps = maps;
    cu.n_maps = 1;
    fresh();
    s += sprintf(s, "%s@!%%p1 bra wait;\n", begin);
    s += sprintf(s, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r3+8192], 32;\n"
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
