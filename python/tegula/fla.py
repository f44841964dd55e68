"""Functions with the signatures of flash-linear-attention 0.6 (fla.ops), on tensors [B, T, H, D] of PyTorch or NumPy.

They return (o, final_state or None); o has the type of q, states are float32 [N, H, K, V], or [N, H, V, K] with
state_v_first. Gates may have any type and are taken in float32, or raw ones of KDA in the type of q where they lose
nothing by it. All forms have gradients of all inputs and of both states, and none breaks a graph of torch.compile.
Hints that change no result (cu_seqlens_cpu, chunk_size, chunk_indices, disable_recompute, use_graph, max_num_seqs)
are taken and have no effect.
"""

import math
import warnings

from . import _swap
from ._arrays import is_torch
from ._shim import (STEP, beside, call, clamp, exp, f32, first_numbers, fixed, flip, given, joined, like, log, numbers,
                    of_one_type, refuse, sigmoid, softplus, unit, unknown, zeros)
from ._c import number, wrong

_HINTS = {"cp_context": "return_intermediate_states is for tokens on one rank: leave one of the two out",
          "head_first": "transpose the inputs to [B, T, H, ...]",
          "cu_seqlens": "output_attentions is for sequences of one length: leave one of the two out"}


def _options(function, kwargs, v_first=False):
    """**kwargs of the peer; head_first and transpose_state_layout are old names. Yields state_v_first."""
    refuse(function, _HINTS, head_first=(kwargs.pop("head_first", False), False))
    v_first = kwargs.pop("state_v_first", v_first)
    if "transpose_state_layout" in kwargs:
        warnings.warn(f"{function}: transpose_state_layout is called state_v_first now", DeprecationWarning, stacklevel=3)
        refuse(function, {"transpose_state_layout": "it is the old name of state_v_first"},
               transpose_state_layout=(v_first, False))
        v_first = kwargs.pop("transpose_state_layout")
    unknown(function, kwargs, ("chunk_size",))
    return v_first


def _reversed(variant, q, k, v, scale, state, final, v_first, cu, step, **rest):
    """From the last token to the first; packed sequences then lie in the other order too."""
    along = {name: flip(x, 1) if name in _ALONG_TOKENS else x for name, x in rest.items()}
    turned = None if cu is None else cu[-1] - flip(cu, 0)
    state = state if cu is None or state is None else flip(state, 0)
    o, S = _run(variant, flip(q, 1), flip(k, 1), flip(v, 1), scale, state, final, v_first, turned, step, **along)
    return flip(o, 1), S if cu is None or S is None else flip(S, 0)


_ALONG_TOKENS = ("a", "g", "gl", "gr", "w")
_OF_TYPE_OF_Q = ("g_raw",)


def _across(name, context, q, cu):
    """Options of _run from cp_context: boundaries are the context's."""
    if context is None:
        return {"cu": cu}
    if not is_torch(q):
        raise wrong(f"{name}: cp_context", "None beside arrays that are not of PyTorch", type(context).__name__)
    from .context_parallel import Context
    found = Context.of(context, f"{name}: cp_context")
    if found is context and cu is not None:
        raise wrong(f"{name}: cu_seqlens", "None beside cp_context", "boundaries",
                    "Context(group, cu_seqlens=...) has those of all tokens of all ranks")
    return {"cp": found, "cu": None}


def _run(variant, q, k, v, scale, state, final, v_first=False, cu=None, step=False, reverse=False, cp=None, **rest):
    if reverse:
        return _reversed(variant, q, k, v, scale, state, final, v_first, cu, step, **rest)
    one = of_one_type(q, k, v)
    rest.update((name, like(rest[name], one[0])) for name in _OF_TYPE_OF_Q if name in rest)
    found = call(variant, final, cu=cu, cp=cp, step=step, state_v_first=v_first, **dict(zip("qkv", one)), S0=f32(state),
                 scale=q.shape[-1] ** -0.5 if scale is None else number("scale", scale),
                 **{name: f32(x) if hasattr(x, "shape") and name not in _OF_TYPE_OF_Q else x
                    for name, x in rest.items()})
    return found["h"] if one[2] is v else like(found["h"], v), found["S"] if final else None


def _is_step(q, cu):
    return cu is None and 0 < q.shape[1] <= STEP


# ---- one decay of a head, or of a token ----


def _simple_gla(q, k, v, g, g_gamma, *rest, **options):
    if g is not None and g_gamma is not None:
        g = f32(g) + fixed(f32(g_gamma))
    if g is not None:
        return _run("simple-gla", q, k, v, *rest, **options, a=g)
    if g_gamma is not None:
        return _run("lightning", q, k, v, *rest, **options, log_lambda=g_gamma)
    return _run("linear", q, k, v, *rest, **options)


def chunk_simple_gla(q, k, v, g=None, g_gamma=None, scale=None, initial_state=None, output_final_state=False,
                     state_v_first=False, cu_seqlens=None, cu_seqlens_cpu=None, **kwargs):
    """S_t = e^(g_t + g_gamma) S_{t-1} + k_t v_t^T; g [B, T, H], g_gamma [H], which gets no gradient."""
    v_first = _options("chunk_simple_gla", kwargs, state_v_first)
    return _simple_gla(q, k, v, g, g_gamma, scale, initial_state, output_final_state, v_first, cu_seqlens)


def fused_recurrent_simple_gla(q, k, v, g=None, g_gamma=None, scale=None, initial_state=None,
                               output_final_state=False, reverse=False, state_v_first=False, cu_seqlens=None,
                               **kwargs):
    """The same; up to 8 tokens by a decode step."""
    v_first = _options("fused_recurrent_simple_gla", kwargs, state_v_first)
    return _simple_gla(q, k, v, g, g_gamma, scale, initial_state, output_final_state, v_first, cu_seqlens,
                       step=_is_step(q, cu_seqlens), reverse=reverse)


def fused_chunk_simple_gla(q, k, v, g=None, g_gamma=None, scale=None, initial_state=None, output_final_state=False,
                           cu_seqlens=None):
    """The same as chunk_simple_gla."""
    return _simple_gla(q, k, v, g, g_gamma, scale, initial_state, output_final_state, cu=cu_seqlens)


def _scores(q, k, log_decay, scale):
    """scale q_i k_j e^(b_i - b_j) for j <= i, with b the running sum of log_decay [B, T, H]: [B, H, T, T] in the type of q."""
    x, y = (f32(t).swapaxes(1, 2) for t in (q, k))
    t = first_numbers(q, q.shape[1])
    scores = x @ y.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else number("scale", scale))
    if log_decay is not None:
        b = f32(log_decay).cumsum(1).swapaxes(1, 2)
        scores = scores * exp(clamp(b[..., :, None] - b[..., None, :], None, 0))
    return like(scores * f32(t[:, None] >= t), q)


def _attentions(name, q, k, log_decay, scale, is_wanted, cu):
    """Made by single operations, beside the kernel."""
    if not is_wanted:
        return None
    refuse(name, _HINTS, cu_seqlens=(cu, None))
    return _scores(q, k, log_decay, scale)


def parallel_simple_gla(q, k, v, g=None, scale=None, output_attentions=False, cu_seqlens=None, cu_seqlens_cpu=None):
    """The same without states; yields (o, None), or with output_attentions the scores [B, H, T, T]."""
    scores = _attentions("parallel_simple_gla", q, k, g, scale, output_attentions, cu_seqlens)
    return _simple_gla(q, k, v, g, None, scale, None, False, cu=cu_seqlens)[0], scores


def _retention(q, H):
    return numbers(q, [math.log1p(-(2.0 ** (-5 - h))) for h in range(H)])


def chunk_retention(q, k, v, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None, **kwargs):
    """The decay of head h is 1 - 2^(-5 - h)."""
    v_first = _options("chunk_retention", kwargs)
    return _simple_gla(q, k, v, None, _retention(q, v.shape[2]), scale, initial_state, output_final_state, v_first,
                       cu_seqlens)


def fused_recurrent_retention(q, k, v, scale=None, initial_state=None, output_final_state=False, reverse=False,
                              cu_seqlens=None, **kwargs):
    """The same; up to 8 tokens by a decode step."""
    return fused_recurrent_simple_gla(q, k, v, None, _retention(q, v.shape[2]), scale, initial_state,
                                      output_final_state, reverse, cu_seqlens=cu_seqlens, **kwargs)


def fused_chunk_retention(q, k, v, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None):
    """The same as chunk_retention."""
    return chunk_retention(q, k, v, scale, initial_state, output_final_state, cu_seqlens)


def parallel_retention(q, k, v, scale=None, output_attentions=False, cu_seqlens=None):
    """The same without states; yields (o, None), or with output_attentions the scores [B, H, T, T]."""
    decays = zeros(q, q.shape[:3]) + _retention(q, v.shape[2])
    scores = _attentions("parallel_retention", q, k, decays, scale, output_attentions, cu_seqlens)
    return chunk_retention(q, k, v, scale, cu_seqlens=cu_seqlens)[0], scores


def _lightning(q, H, layer_idx, num_layers):
    return numbers(q, [-8 / H * (1 - layer_idx / num_layers) * h for h in range(H)])


def chunk_lightning_attn(q, k, v, layer_idx, num_layers, scale=None, initial_state=None, output_final_state=False,
                         cu_seqlens=None, **kwargs):
    """The log of the decay of head h is -8/H (1 - layer_idx / num_layers) h."""
    v_first = _options("chunk_lightning_attn", kwargs)
    decays = _lightning(q, v.shape[2], layer_idx, num_layers)
    return _simple_gla(q, k, v, None, decays, scale, initial_state, output_final_state, v_first, cu_seqlens)


def fused_recurrent_lightning_attn(q, k, v, layer_idx, num_layers, scale=None, initial_state=None,
                                   output_final_state=False, reverse=False, cu_seqlens=None, **kwargs):
    """The same; up to 8 tokens by a decode step."""
    return fused_recurrent_simple_gla(q, k, v, None, _lightning(q, v.shape[2], layer_idx, num_layers), scale,
                                      initial_state, output_final_state, reverse, cu_seqlens=cu_seqlens, **kwargs)


def _linear(q, k, v, scale, state, final, normalize, cu, **options):
    """Normalised, a column of ones beside v becomes what h is divided by, scale sum_j q_i k_j, and in the state the sum
    of k, which is z of (S, z)."""
    if not normalize:
        return _run("linear", q, k, v, scale, state, final, cu=cu, **options)
    S0, z0 = state if isinstance(state, tuple) else (state, None)
    N, V = q.shape[0] if cu is None else cu.shape[0] - 1, v.shape[-1]
    if S0 is not None or z0 is not None:
        S0 = zeros(v, (N, v.shape[2], k.shape[-1], V)) if S0 is None else f32(S0)
        z0 = zeros(v, S0.shape[:-1]) if z0 is None else f32(z0)
        S0 = beside(S0, z0.reshape(*S0.shape[:-1], 1))
    v = beside(v, like(zeros(v, (*v.shape[:-1], 1)) + 1, v))
    h, S = _run("linear", q, k, v, scale, S0, True, cu=cu, **options)
    o = like(f32(h[..., :V]) / (f32(h[..., V:]) + 1e-10), v)
    return o, (S[..., :V] if final else None, S[:, None, ..., V])


def chunk_linear_attn(q, k, v, scale=None, initial_state=None, output_final_state=False, normalize=True,
                      cu_seqlens=None):
    """No decay; normalised, the state is (S, z) with z [N, 1, H, K], and z is there without output_final_state too."""
    return _linear(q, k, v, scale, initial_state, output_final_state, normalize, cu_seqlens)


def fused_chunk_linear_attn(q, k, v, scale=None, initial_state=None, output_final_state=False, normalize=True,
                            cu_seqlens=None):
    """The same as chunk_linear_attn."""
    return _linear(q, k, v, scale, initial_state, output_final_state, normalize, cu_seqlens)


def fused_recurrent_linear_attn(q, k, v, scale=None, initial_state=None, output_final_state=False, reverse=False,
                                normalize=False, cu_seqlens=None):
    """The same; up to 8 tokens by a decode step."""
    return _linear(q, k, v, scale, initial_state, output_final_state, normalize, cu_seqlens,
                   step=_is_step(q, cu_seqlens), reverse=reverse)


# ---- a decay of every channel ----


def chunk_gla(q, k, v, g, scale=None, initial_state=None, output_final_state=False, state_v_first=False,
              cu_seqlens=None, cu_seqlens_cpu=None):
    """S_t = diag(e^g_t) S_{t-1} + k_t v_t^T; g [B, T, H, K]."""
    return _run("vector-decay", q, k, v, scale, initial_state, output_final_state, state_v_first, cu_seqlens, g=g)


def fused_recurrent_gla(q, k, v, gk=None, gv=None, scale=None, initial_state=None, output_final_state=False,
                        reverse=False, state_v_first=False, cu_seqlens=None, **kwargs):
    """The same, also with a decay gv [B, T, H, V] of the columns; up to 8 tokens by a decode step."""
    name = "fused_recurrent_gla"
    v_first = _options(name, kwargs, state_v_first)
    rest = (scale, initial_state, output_final_state, v_first, cu_seqlens, _is_step(q, cu_seqlens), reverse)
    if gv is None:
        return _run("linear", q, k, v, *rest) if gk is None else _run("vector-decay", q, k, v, *rest, g=gk)
    return _run("dfw", q, k, v, *rest, gl=zeros(k, k.shape) if gk is None else gk, gr=gv)


def _rwkv6(r, k, v, w, u, *rest, **options):
    """Its gate is the log of minus the log of the decay."""
    return _run("rwkv6", r, k, v, *rest, **options, w=log(-f32(w)), u=u)


def chunk_rwkv6(r, k, v, w, u, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None,
                cu_seqlens_cpu=None, **kwargs):
    """o_t = (S_{t-1} + diag(u) k_t v_t^T)^T r_t, S_t = diag(e^w_t) S_{t-1} + k_t v_t^T; w [B, T, H, K], u [H, K]."""
    v_first = _options("chunk_rwkv6", kwargs)
    return _rwkv6(r, k, v, w, u, scale, initial_state, output_final_state, v_first, cu_seqlens)


def fused_recurrent_rwkv6(r, k, v, w, u, scale=None, initial_state=None, output_final_state=False, reverse=False,
                          cu_seqlens=None):
    """The same; up to 8 tokens by a decode step."""
    return _rwkv6(r, k, v, w, u, scale, initial_state, output_final_state, False, cu_seqlens, _is_step(r, cu_seqlens),
                  reverse)


# ---- the delta rule ----


def chunk_delta_rule(q, k, v, beta, scale=None, initial_state=None, output_final_state=False,
                     use_qk_l2norm_in_kernel=False, cu_seqlens=None, cu_seqlens_cpu=None, **kwargs):
    """S_t = S_{t-1} + beta_t k_t (v_t - S_{t-1}^T k_t)^T; beta [B, T, H]."""
    v_first = _options("chunk_delta_rule", kwargs)
    return _run("delta-net-unit" if use_qk_l2norm_in_kernel else "delta-net", q, k, v, scale, initial_state,
                output_final_state, v_first, cu_seqlens, beta=beta)


def fused_recurrent_delta_rule(q, k, v, beta=None, scale=None, initial_state=None, output_final_state=False,
                               use_qk_l2norm_in_kernel=False, cu_seqlens=None):
    """The same, beta 1 where there is none; up to 8 tokens by a decode step."""
    beta = zeros(v, v.shape[:3]) + 1 if beta is None else beta
    return _run("delta-net-unit" if use_qk_l2norm_in_kernel else "delta-net", q, k, v, scale, initial_state,
                output_final_state, cu=cu_seqlens, step=_is_step(q, cu_seqlens), beta=beta)


def _beta(beta, is_raw, may_be_negative):
    return sigmoid(f32(beta)) * (2 if may_be_negative else 1) if is_raw else beta


def _gated_delta_rule(name, q, k, v, g, beta, unit_rows, is_raw_gate, is_raw_beta, may_be_negative, A_log, dt_bias,
                      *rest, **options):
    if is_raw_gate:
        given(name, A_log=(A_log, "use_gate_in_kernel"))
    if unit_rows and is_raw_gate and is_raw_beta:
        bias = zeros(v, A_log.shape) if dt_bias is None else dt_bias
        return _run("gated-delta-gate", q, k, v, *rest, **options, a_raw=g, beta_raw=beta, A_log=A_log, dt_bias=bias,
                    beta_max=2.0 if may_be_negative else 1.0)
    if is_raw_gate:
        raw = f32(g) if dt_bias is None else f32(g) + f32(dt_bias)
        g = -exp(f32(A_log)) * softplus(raw)
    return _run("gated-delta-unit" if unit_rows else "gated-delta", q, k, v, *rest, **options, a=g,
                beta=_beta(beta, is_raw_beta, may_be_negative))


def chunk_gated_delta_rule(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False,
                           use_qk_l2norm_in_kernel=False, use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False,
                           state_v_first=False, cu_seqlens=None, cu_seqlens_cpu=None, chunk_indices=None,
                           cp_context=None, use_gate_in_kernel=False, A_log=None, dt_bias=None, **kwargs):
    """The delta rule on the decayed state; q, k [B, T, H, K], v [B, T, HV, V], g and beta [B, T, HV]."""
    name = "chunk_gated_delta_rule"
    v_first = _options(name, kwargs, state_v_first)
    return _gated_delta_rule(name, q, k, v, g, beta, use_qk_l2norm_in_kernel, use_gate_in_kernel,
                             use_beta_sigmoid_in_kernel, allow_neg_eigval, A_log, dt_bias, scale, initial_state,
                             output_final_state, v_first, **_across(name, cp_context, q, cu_seqlens))


def fused_recurrent_gated_delta_rule(q, k, v, g=None, gk=None, gv=None, beta=None, scale=None, initial_state=None,
                                     output_final_state=False, use_qk_l2norm_in_kernel=False,
                                     use_gate_in_kernel=False, A_log=None, dt_bias=None,
                                     use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False, state_v_first=False,
                                     cu_seqlens=None, **kwargs):
    """The same, or with gk [B, T, HV, K] for g; up to 8 tokens by a decode step."""
    name = "fused_recurrent_gated_delta_rule"
    v_first = _options(name, kwargs, state_v_first)
    if gv is not None:
        raise wrong(f"{name}: gv", "None", "an array", "decays of values under the delta rule are not there")
    beta = zeros(v, v.shape[:3]) + 1 if beta is None else beta
    rest = (scale, initial_state, output_final_state, v_first, cu_seqlens, _is_step(q, cu_seqlens))
    if gk is not None:
        gk = f32(gk) if g is None else f32(gk) + f32(g)[..., None]
        return _kda(name, q, k, v, gk, beta, use_qk_l2norm_in_kernel, False, use_beta_sigmoid_in_kernel,
                    allow_neg_eigval, None, None, None, *rest)
    g = zeros(v, v.shape[:3]) if g is None else g
    return _gated_delta_rule(name, q, k, v, g, beta, use_qk_l2norm_in_kernel, use_gate_in_kernel,
                             use_beta_sigmoid_in_kernel, allow_neg_eigval, A_log, dt_bias, *rest)


def _kda_gate(g, A_log, dt_bias, lower_bound):
    raw = f32(g) if dt_bias is None else f32(g) + dt_bias
    if lower_bound is None:
        return -exp(A_log)[:, None] * softplus(raw)
    return lower_bound * sigmoid(raw if A_log is None else exp(A_log)[:, None] * raw)


def _is_wider(x, *rows):
    """Would x lose digits in the widest type of the rows?"""
    return of_one_type(x, *rows)[0].dtype != of_one_type(*rows)[0].dtype


def _kda(name, q, k, v, g, beta, unit_rows, is_raw_gate, is_raw_beta, may_be_negative, lower_bound, A_log, dt_bias,
         *rest, **options):
    if is_raw_gate and lower_bound is None:
        given(name, A_log=(A_log, "use_gate_in_kernel"))
    if is_raw_gate:  # of as many numbers as there are heads, or channels, in any shape
        A_log = None if A_log is None else f32(A_log).reshape(g.shape[2])
        dt_bias = None if dt_bias is None else f32(dt_bias).reshape(g.shape[2:])
    if unit_rows and is_raw_gate and is_raw_beta and not _is_wider(g, q, k, v):
        A_log = zeros(g, g.shape[2:3]) if A_log is None else A_log
        bias = zeros(g, g.shape[2:]) if dt_bias is None else dt_bias
        bound = {} if lower_bound is None else {"lower_bound": float(lower_bound)}
        return _run("kda-safe" if bound else "kda-gate", q, k, v, *rest, **options, g_raw=g, beta_raw=beta, A_log=A_log,
                    dt_bias=bias, beta_max=2.0 if may_be_negative else 1.0, **bound)
    if is_raw_gate:
        g = _kda_gate(g, A_log, dt_bias, lower_bound)
    if unit_rows:
        q, k = unit(q), unit(k)
    return _run("kda", q, k, v, *rest, **options, g=g, beta=_beta(beta, is_raw_beta, may_be_negative))


def _with_states(run, along_tokens, state, like_state, cu, chunk):
    """What run(*along_tokens, state) yields chunk by chunk, and the states before each chunk [B, chunks, ...]."""
    bounds = [0, along_tokens[0].shape[1]] if cu is None else cu.tolist()
    outputs, last, before = [], [], []
    for n, (begin, end) in enumerate(zip(bounds, bounds[1:])):
        S = like_state[:] if cu is None else like_state[n : n + 1]
        if state is not None:
            S = f32(state if cu is None else state[n : n + 1])
        for at in range(begin, end, chunk):
            before.append(S[:, None])
            o, S = run(*(x[:, at : min(at + chunk, end)] for x in along_tokens), S)
            outputs.append(o)
        last.append(S)
    return joined(outputs, 1), joined(last, 0), joined(before, 1)


def chunk_kda(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False,
              use_qk_l2norm_in_kernel=False, use_gate_in_kernel=False, use_beta_sigmoid_in_kernel=False,
              allow_neg_eigval=False, safe_gate=False, lower_bound=None, disable_recompute=False,
              return_intermediate_states=False, state_v_first=False, cu_seqlens=None, cu_seqlens_cpu=None,
              cp_context=None, use_graph=False, max_num_seqs=None, A_log=None, dt_bias=None, **kwargs):
    """The delta rule on diag(e^g_t) S_{t-1}; g [B, T, HV, K]. With return_intermediate_states also the states before each
    chunk_size (64) tokens, [B, chunks, HV, K, V] in the type of k: one call a chunk."""
    chunk = kwargs.get("chunk_size") or 64
    v_first = _options("chunk_kda", kwargs, state_v_first)
    if return_intermediate_states:
        refuse("chunk_kda", _HINTS, cp_context=(cp_context, None))
    if safe_gate and use_gate_in_kernel and lower_bound is None:  # gates that are given are exact whatever they are
        raise wrong("chunk_kda: lower_bound", "a number, which safe_gate needs with use_gate_in_kernel", "None")

    def run(q, k, v, g, beta, state, final=True, **options):
        return _kda("chunk_kda", q, k, v, g, beta, use_qk_l2norm_in_kernel, use_gate_in_kernel,
                    use_beta_sigmoid_in_kernel, allow_neg_eigval, lower_bound, A_log, dt_bias, scale, state, final, v_first,
                    **options)

    if not return_intermediate_states:
        return run(q, k, v, g, beta, initial_state, output_final_state,
                   **_across("chunk_kda", cp_context, q, cu_seqlens))
    N, wide = q.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1, (q.shape[-1], v.shape[-1])
    start = zeros(v, (N, v.shape[2], *(wide[::-1] if v_first else wide)))
    o, S, before = _with_states(run, (q, k, v, g, beta), initial_state, start, cu_seqlens, chunk)
    return o, S if output_final_state else None, like(before, k)


def fused_recurrent_kda(q, k, v, g, beta, A_log=None, dt_bias=None, scale=None, initial_state=None,
                        output_final_state=False, use_qk_l2norm_in_kernel=False, use_gate_in_kernel=False,
                        use_beta_sigmoid_in_kernel=False, allow_neg_eigval=False, lower_bound=None,
                        state_v_first=False, cu_seqlens=None, **kwargs):
    """The same; up to 8 tokens by a decode step."""
    v_first = _options("fused_recurrent_kda", kwargs, state_v_first)
    return _kda("fused_recurrent_kda", q, k, v, g, beta, use_qk_l2norm_in_kernel, use_gate_in_kernel,
                use_beta_sigmoid_in_kernel, allow_neg_eigval, lower_bound, A_log, dt_bias, scale, initial_state,
                output_final_state, v_first, cu_seqlens, _is_step(q, cu_seqlens))


_FUNCTIONS = {name: function for name, function in globals().items() if name.startswith(_swap.PREFIXES)}
_SWAP = _swap.FlaSwap(_FUNCTIONS)


def install(strict=False):
    """Puts these functions in the place of flash-linear-attention's, in all modules that are loaded, and yields their
    names. What cannot be honoured goes to the peer's own function after a warning; with `strict` the error is raised."""
    return _SWAP.install(strict)


def uninstall():
    """Puts flash-linear-attention's functions back."""
    _SWAP.uninstall()
