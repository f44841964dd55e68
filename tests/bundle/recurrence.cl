/* tests/bundle/recurrence.cl - the mLSTM recurrence with sigmoid gates, one thread a state column.
 *
 * The simplest kernel with every kind of argument: inputs, outputs, optional states, workspace,
 * strides, sizes and scale. recurrence.ptx is made from it by
 *     clang -x cl -cl-std=CL2.0 -O1 -fno-unroll-loops -S --target=nvptx64-nvidia-cuda -Xclang -target-cpu
 *           -Xclang sm_80 -Xclang -target-feature -Xclang +ptx70 recurrence.cl -o recurrence.ptx */
#define WIDTH 16 /* dqk = dhv = threads of the block */

typedef __global const float *input;
typedef __global float *output;

static float sigmoid(float x)
{
    const float log2_e = 1.4426950408889634f;
    return __nvvm_rcp_rn_ftz_f(1.0f + __nvvm_ex2_approx_ftz_f(-log2_e * x));
}

__kernel void recurrence(ulong q_, long q_b, long q_n, long q_t, ulong k_, long k_b, long k_n, long k_t,
                         ulong v_, long v_b, long v_n, long v_t, ulong f_, long f_b, long f_n, long f_t,
                         ulong i_, long i_b, long i_n, long i_t, ulong S0_, long S0_b, long S0_n,
                         long S0_r, ulong h_, long h_b, long h_n, long h_t, ulong S_, long S_b,
                         long S_n, long S_r, ulong C_, uint heads, uint tokens, float scale,
                         uint chunks_unused, uint chunk_unused)
{
    uint block = __nvvm_read_ptx_sreg_ctaid_x(), column = __nvvm_read_ptx_sreg_tid_x();
    long b = block / heads, n = block % heads;
    input q = (input)q_ + b * q_b + n * q_n, k = (input)k_ + b * k_b + n * k_n;
    input v = (input)v_ + b * v_b + n * v_n + column;
    input f = (input)f_ + b * f_b + n * f_n, i = (input)i_ + b * i_b + n * i_n;
    output h = (output)h_ + b * h_b + n * h_n + column;
    output C = (output)C_ + (long)block * WIDTH * WIDTH + column;

    for (uint r = 0; r < WIDTH; r++)
        C[r * WIDTH] = S0_ ? ((input)S0_)[b * S0_b + n * S0_n + r * S0_r + column] : 0.0f;
    for (uint t = 0; t < tokens; t++) {
        float keep = sigmoid(f[t * f_t]), take = sigmoid(i[t * i_t]) * v[t * v_t], sum = 0.0f;
        for (uint r = 0; r < WIDTH; r++) {
            float state = keep * C[r * WIDTH] + take * k[t * k_t + r];
            C[r * WIDTH] = state;
            sum += state * q[t * q_t + r];
        }
        h[t * h_t] = scale * sum;
    }
    for (uint r = 0; r < WIDTH && S_; r++)
        ((output)S_)[b * S_b + n * S_n + r * S_r + column] = C[r * WIDTH];
}
