/* round.c - f32 and f64 arithmetic with .rz, .rm and .rp: rare (nvcc's expf uses fma.rm), so the
 * CPU's rounding mode is switched around each instruction. The volatile operands keep the compiler
 * from moving the operation out. */
#include "float_bits.h"

#include <fenv.h>
#include <math.h>

static int rounding_mode(u32 rnd)
{
    static const int modes[] = {
        [RND_RN] = FE_TONEAREST, [RND_RZ] = FE_TOWARDZERO, [RND_RM] = FE_DOWNWARD, [RND_RP] = FE_UPWARD};
    return rnd <= RND_RP ? modes[rnd] : FE_TONEAREST;
}

static float float_source(const struct warp *w, const struct insn *in, u32 k, u32 l)
{
    return flush_float(bits_float(row32(w, in->op[k])[l]), in->mod[MOD_FTZ] ? 0x7fffffffu : 0);
}

static void float_result(struct warp *w, const struct insn *in, u32 l, float x)
{
    x = flush_float(x, in->mod[MOD_FTZ] ? 0x7fffffffu : 0);
    if (in->mod[MOD_SAT])
        x = x > 0 ? (x < 1 ? x : 1) : 0;
    row32(w, in->op[0])[l] = float_bits(x);
}

#define DIRECTED(id, T, n, load, store, expr)                                                                          \
    insn_run run_directed_##id;                                                                                        \
    void run_directed_##id(struct warp *w, const struct insn *in, u32 mask)                                            \
    {                                                                                                                  \
        const int old = fegetround();                                                                                  \
        fesetround(rounding_mode(in->mod[MOD_RND]));                                                                   \
        FOR_LANES(l, mask)                                                                                             \
        {                                                                                                              \
            volatile T x[3] = {0, 0, 0};                                                                               \
            for (u32 k = 0; k < (n); k++)                                                                              \
                x[k] = load;                                                                                           \
            const volatile T r = expr;                                                                                 \
            store;                                                                                                     \
        }                                                                                                              \
        fesetround(old);                                                                                               \
    }
#define DIRECTED_F32(id, n, expr) DIRECTED(id, float, n, float_source(w, in, k + 1, l), float_result(w, in, l, r), expr)
#define DIRECTED_F64(id, n, expr)                                                                                      \
    DIRECTED(id, double, n, bits_double(row64(w, in->op[k + 1])[l]), row64(w, in->op[0])[l] = double_bits(r), expr)

DIRECTED_F32(add_f32, 2, x[0] + x[1])
DIRECTED_F32(sub_f32, 2, x[0] - x[1])
DIRECTED_F32(mul_f32, 2, x[0] * x[1])
DIRECTED_F32(fma_f32, 3, fmaf(x[0], x[1], x[2]))
DIRECTED_F32(div_f32, 2, x[0] / x[1])
DIRECTED_F32(sqrt_f32, 1, sqrtf(x[0]))
DIRECTED_F32(rcp_f32, 1, 1.0f / x[0])
DIRECTED_F64(add_f64, 2, x[0] + x[1])
DIRECTED_F64(sub_f64, 2, x[0] - x[1])
DIRECTED_F64(mul_f64, 2, x[0] * x[1])
DIRECTED_F64(fma_f64, 3, fma(x[0], x[1], x[2]))
DIRECTED_F64(div_f64, 2, x[0] / x[1])
