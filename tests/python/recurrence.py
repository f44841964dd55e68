"""The recurrences in fp64, token by token, on arrays [B, NH, T, ...]: what the kernels are compared with."""

import numpy as np


def tokens(x):
    """Over the axis T of [B, NH, T, ...]."""
    return np.moveaxis(x.astype(np.float64), 2, 0)


def heads(x, n):
    """[B, NH/group, ...] -> [B, NH, ...]: each serves a run of heads."""
    return np.repeat(x, n // x.shape[1], axis=1)


def outer(k, v):
    return k[..., :, None] * v[..., None, :]


def read(S, q):
    return np.einsum("bhkv,bhk->bhv", S, q)


def decayed(q, k, v, log_decay, scale, S0=None, log_input=None):
    """S = e^a S + e^i k v^T, h = scale S^T q. log_decay [B, NH, T], [NH] or of channels [B, NH, T, dqk]; -> h, S."""
    B, H, T, V = v.shape
    q, k = heads(q, H), heads(k, H)
    a = np.asarray(log_decay, np.float64)
    a = np.broadcast_to(a[None, :, None], (B, H, T)) if a.ndim == 1 else a
    i = np.zeros((B, H, T)) if log_input is None else log_input
    S = np.zeros((B, H, q.shape[-1], V)) if S0 is None else S0.astype(np.float64)
    h = []
    for q_t, k_t, v_t, a_t, i_t in zip(tokens(q), tokens(k), tokens(v), tokens(a), tokens(i)):
        decay = np.exp(a_t)[..., None] if a_t.ndim == 3 else np.exp(a_t)[..., None, None]
        S = decay * S + np.exp(i_t)[..., None, None] * outer(k_t, v_t)
        h.append(scale * read(S, q_t))
    return np.stack(h, 2), S


def delta(q, k, v, beta, scale, log_decay=None, S0=None, unit=False, eps=1e-6):
    """S = D S + beta k (v - (D S)^T k)^T with D = e^a, or diag(e^g); -> h, S."""
    B, H, T, V = v.shape
    q, k = heads(q, H).astype(np.float64), heads(k, H).astype(np.float64)
    if unit:
        q, k = (x / np.sqrt((x * x).sum(-1, keepdims=True) + eps) for x in (q, k))
    a = np.zeros((B, H, T)) if log_decay is None else log_decay
    S = np.zeros((B, H, q.shape[-1], V)) if S0 is None else S0.astype(np.float64)
    h = []
    for q_t, k_t, v_t, b_t, a_t in zip(tokens(q), tokens(k), tokens(v), tokens(beta), tokens(a)):
        S = (np.exp(a_t)[..., None] if a_t.ndim == 3 else np.exp(a_t)[..., None, None]) * S
        S = S + outer(b_t[..., None] * k_t, v_t - read(S, k_t))
        h.append(scale * read(S, q_t))
    return np.stack(h, 2), S


def log_sigmoid(x):
    return -np.logaddexp(0, -np.asarray(x, np.float64))


def softplus(x):
    return np.logaddexp(0, np.asarray(x, np.float64))


def mlstm(q, k, v, i, f, scale, C0=None, n0=None, m0=None, eps=0.0):
    """mLSTM with exponential input gate: -> h, C, n, m."""
    B, H, T, V = v.shape
    K = q.shape[-1]
    C = np.zeros((B, H, K, V)) if C0 is None else C0.astype(np.float64)
    n = np.zeros((B, H, K)) if n0 is None else n0.astype(np.float64)
    m = np.full((B, H), -np.inf) if m0 is None else m0.astype(np.float64)
    h = []
    for q_t, k_t, v_t, i_t, f_t in zip(*map(tokens, (q, k, v, i, f))):
        before = log_sigmoid(f_t) + m
        m = np.maximum(before, i_t)
        keep, write = np.exp(before - m), np.exp(i_t - m)
        C = keep[..., None, None] * C + write[..., None, None] * outer(k_t, v_t)
        n = keep[..., None] * n + write[..., None] * k_t
        below = np.maximum(np.abs(scale * (n * q_t).sum(-1)), np.exp(-m)) + eps
        h.append(scale * read(C, q_t) / below[..., None])
    return np.stack(h, 2), C, n, m


def mlstm_sig(q, k, v, i, f, scale, normalize, C0=None, n0=None, eps=0.0):
    """mLSTM with sigmoid input gate: -> h, C, n."""
    h, C = decayed(q, k, v, log_sigmoid(f), scale, C0, log_sigmoid(i))
    n = np.zeros(k.shape[:2] + k.shape[-1:]) if n0 is None else n0.astype(np.float64)
    out = []
    for q_t, k_t, i_t, f_t, h_t in zip(*map(tokens, (q, k, i, f, h))):
        n = np.exp(log_sigmoid(f_t))[..., None] * n + np.exp(log_sigmoid(i_t))[..., None] * k_t
        below = np.maximum(np.abs(scale * (n * q_t).sum(-1)), 1) + eps
        out.append(h_t / below[..., None] if normalize else h_t)
    return np.stack(out, 2), C, n


def error(found, expected):
    """RMS of the difference over RMS of what is expected."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert found.shape == expected.shape, f"{found.shape} and {expected.shape}"
    return np.sqrt(((found - expected) ** 2).mean()) / max(np.sqrt((expected**2).mean()), 1e-30)


def slope(function, inputs, directions, step=1e-5):
    """The derivative of a number in a direction, in fp64."""
    moved = [[x.astype(np.float64) + sign * step * d for x, d in zip(inputs, directions)] for sign in (1, -1)]
    return (function(*moved[0]) - function(*moved[1])) / (2 * step)
