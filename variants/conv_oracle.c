/* variants/conv_oracle.c - the convolution and its gradients in fp64, channel by channel (conv.h). */
#include "variants/conv.h"
#include "variants/oracle_head.h"

#include <math.h>

/* A channel of a head of a sequence. */
struct channel {
    const tg_oracle_call *call;
    struct oracle_head at;
    int64_t i;
};

static int64_t row_of(const struct channel *c, int64_t t)
{
    return (c->at.first + t) * c->call->dhv + c->i;
}

static int64_t state_of(const struct channel *c)
{
    return c->at.state * c->call->dhv + c->i;
}

static double parameter(const struct channel *c, int tile)
{
    return c->call->in[tile] ? c->call->in[tile][c->at.head * c->call->dhv + c->i] : 0;
}

/* What a tensor of tokens, and in front of it one of states, have of token t; t >= -CONV_STATE. */
static double token(const struct channel *c, int tokens, int states, int64_t t)
{
    const double *state = t < 0 ? c->call->in[states - 1 - t] : NULL;
    return t >= 0 ? c->call->in[tokens][row_of(c, t)] : state ? state[state_of(c)] : 0;
}

static double convolved(const struct channel *c, int64_t t)
{
    double y = parameter(c, BIAS);
    for (int n = 0; n < CONV_WIDTH; n++)
        y += parameter(c, W0 + n) * token(c, X, S10, t - n);
    return y;
}

static void forward(const struct channel *c)
{
    const int64_t tokens = c->at.tokens;
    for (int64_t t = 0; c->call->out[H] && t < tokens; t++) {
        const double y = convolved(c, t);
        c->call->out[H][row_of(c, t)] = y / (1 + exp(-y));
    }
    for (int n = 0; n < CONV_STATE; n++)
        if (c->call->out[S1 + n])
            c->call->out[S1 + n][state_of(c)] = token(c, X, S10, tokens - 1 - n);
}

/* The gradient of y; 0 behind the last token. */
static double gradient(const struct channel *c, int64_t t)
{
    if (t < 0 || t >= c->at.tokens)
        return 0;
    const double y = convolved(c, t), s = 1 / (1 + exp(-y)), left = 1 / (1 + exp(y));
    return c->call->in[DH][row_of(c, t)] * s * (1 + y * left);
}

/* That of token t of x, which may be one of the initial state. */
static double of_token(const struct channel *c, int64_t t)
{
    const int64_t n = c->at.tokens - 1 - t; /* the final state has the last ones, too */
    double sum = n < CONV_STATE && c->call->in[DS1 + n] ? c->call->in[DS1 + n][state_of(c)] : 0;
    for (int k = 0; k < CONV_WIDTH; k++)
        sum += parameter(c, W0 + k) * gradient(c, t + k);
    return sum;
}

static void add_parameter(const struct channel *c, int tile, double x)
{
    if (c->call->out[tile])
        c->call->out[tile][c->at.head * c->call->dhv + c->i] += x;
}

static void backward(const struct channel *c)
{
    for (int64_t t = 0; t < c->at.tokens; t++) {
        const double dy = gradient(c, t);
        if (c->call->out[DX])
            c->call->out[DX][row_of(c, t)] = of_token(c, t);
        for (int n = 0; n < CONV_WIDTH; n++)
            add_parameter(c, DW0 + n, dy * token(c, X, S10, t - n));
        add_parameter(c, DBIAS, dy);
    }
    for (int n = 0; n < CONV_STATE; n++)
        if (c->call->out[DS10 + n])
            c->call->out[DS10 + n][state_of(c)] = of_token(c, -1 - n);
}

static void each_channel(const tg_oracle_call *call, void (*visit)(const struct channel *))
{
    for (int64_t s = 0; s < call->batch * call->heads; s++) {
        struct channel c = {.call = call, .at = oracle_head(call, s)};
        for (c.i = 0; c.i < call->dhv; c.i++)
            visit(&c);
    }
}

void tg_conv_oracle(const tg_oracle_call *call)
{
    each_channel(call, forward);
}

void tg_conv_oracle_backward(const tg_oracle_call *call)
{
    for (int tile = DW0; tile <= DBIAS; tile++)
        for (int64_t i = 0; call->out[tile] && i < call->heads * call->dhv; i++)
            call->out[tile][i] = 0;
    each_channel(call, backward);
}
