"""Mamba-2's mamba_chunk_scan_combined and selective_state_update (mamba_ssm), on tensors of PyTorch or NumPy.

chunk_size and state_dtype, the type of states between chunks, are taken and have no effect: the schedule has its own. The
kernel makes the gates; what it has not, time steps without softplus or with a limit, D of two axes and z, is made around
it. Sequences by seq_idx run as packed ones, whose boundaries the host reads: cu_seqlens needs no such wait.
"""

from . import _swap
from ._shim import (call, clamp, expm1, f32, first_numbers, given, is_tied, is_torch, library, like, log, of_one_type, sigmoid,
                    softplus, update, zeros)
from ._c import wrong

_NO_LIMIT = (0.0, float("inf"))
_MAMBA1 = "a decay of every channel, as Mamba-1 has, is for mamba_ssm's own function"


def _raw(dt, dt_bias, dt_softplus, dt_limit):
    """What softplus makes the peer's time steps of; a step of 0 is one of 1e-30, whose gradient is a number."""
    dt = dt if dt_bias is None else dt + f32(dt_bias)
    dt = clamp(softplus(dt) if dt_softplus else dt, max(dt_limit[0], 1e-30), dt_limit[1])
    return dt + log(-expm1(-dt))


def _inputs(x, dt, A, B, C, D, dt_bias, dt_softplus, dt_limit):
    """Those of mamba2; D [heads] or None."""
    dt, A = f32(dt), f32(A)
    if not dt_softplus or tuple(dt_limit) != _NO_LIMIT:
        dt, dt_bias = _raw(dt, dt_bias, dt_softplus, dt_limit), None
    C, B, x = of_one_type(C, B, x)
    return {"Cm": C, "Bm": B, "x": x, "dt_raw": dt, "A_log": log(-A), "scale": 1.0,
            "dt_bias": zeros(A, A.shape) if dt_bias is None else f32(dt_bias),
            "D": zeros(A, A.shape) if D is None else f32(D)}


def _finish(out, x, D, z):
    """What the kernel has not: D of two axes, and the output gate."""
    if D is not None and len(D.shape) == 2:
        out = like(f32(out) + f32(D) * f32(x), x)
    return out if z is None else like(f32(out) * f32(z) * sigmoid(f32(z)), x)


_ALONG_TOKENS = ("Cm", "Bm", "x", "dt_raw")


def _boundaries(seq_idx):
    """Of the sequences of all rows one behind the other; and each row's first and last of them."""
    of = library(seq_idx)
    is_first = of.concatenate((seq_idx[:, :1] == seq_idx[:, :1], seq_idx[:, 1:] != seq_idx[:, :-1]), 1)
    starts, ends = of.argwhere(is_first.reshape(-1))[:, 0], is_first.sum(1).cumsum(0)
    zero = starts[:1] * 0
    return of.concatenate((starts, zero + is_first.shape[0] * is_first.shape[1])), of.concatenate((zero, ends[:-1])), ends - 1


def _at(n, index, states):
    """n states, zero but those at index."""
    S = zeros(states, (n, *states.shape[1:]))
    if is_torch(S):
        return S.index_copy(0, index, f32(states))
    S[index] = states
    return S


def _scan(inputs, initial, final, seq_idx, cu):
    """The outputs, the final states of rows, and of sequences."""
    if seq_idx is None:
        found = call("mamba2", final, cu=cu, S0=f32(initial), state_v_first=True, **inputs)
        return found["h"], found.get("S"), found.get("S")
    rows, (cu, first, last) = seq_idx.shape, _boundaries(seq_idx)
    inputs = {name: x.reshape(1, -1, *x.shape[2:]) if name in _ALONG_TOKENS else x for name, x in inputs.items()}
    S0 = None if initial is None else _at(cu.shape[0] - 1, first, initial)
    found = call("mamba2", final, cu=cu, S0=S0, state_v_first=True, **inputs)
    return found["h"].reshape(*rows, *found["h"].shape[2:]), found["S"][last] if final else None, found.get("S")


def mamba_chunk_scan_combined(x, dt, A, B, C, chunk_size, D=None, z=None, dt_bias=None, initial_states=None,
                              seq_idx=None, cu_seqlens=None, dt_softplus=False, dt_limit=_NO_LIMIT,
                              return_final_states=False, return_varlen_states=False, state_dtype=None):
    """out [B, L, heads, headdim], or a tuple of it and the states that are asked for, [B, heads, headdim, dstate] and, of
    sequences, [N, heads, headdim, dstate].

    x [B, L, heads, headdim], dt [B, L, heads], A [heads] negative, B and C [B, L, groups, dstate], D [heads] or
    [heads, headdim], z as x: out silu(z); seq_idx [B, L], a number for each sequence, or cu_seqlens [N + 1], with which the
    final states are those of sequences too.
    """
    name = "mamba_chunk_scan_combined"
    if D is not None and len(D.shape) not in (1, 2):
        raise wrong(f"{name}: D", "[heads] or [heads, headdim]", f"shape {list(D.shape)}")
    if seq_idx is not None and tuple(seq_idx.shape) != tuple(x.shape[:2]):
        raise wrong(f"{name}: seq_idx", f"[B, L] = {list(x.shape[:2])}", f"shape {list(seq_idx.shape)}")
    if return_varlen_states:
        given(name, cu_seqlens=(cu_seqlens, "return_varlen_states"))
    inputs = _inputs(x, dt, A, B, C, D if D is not None and len(D.shape) == 1 else None, dt_bias, dt_softplus, dt_limit)
    h, final, of_sequences = _scan(inputs, initial_states, return_final_states or return_varlen_states, seq_idx, cu_seqlens)
    out = _finish(like(h, x), x, D, z)
    states = (final,) * return_final_states + (of_sequences,) * return_varlen_states
    return (out, *states) if states else out


def _one(name, x, n):
    """The number of each head, of a tensor that has it n axes long."""
    if x is None:
        return None
    if not is_tied(x, n):
        raise wrong(f"selective_state_update: {name}", "one number a head, expanded (strides of 0), as Mamba-2 has it",
                    f"strides of {n} axes that are not 0", _MAMBA1)
    return x[(..., *(0,) * n)]


def selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False,
                           state_batch_indices=None):
    """One token: out [batch, heads, dim]; `state` [slots, heads, dim, dstate] is changed in place.

    x [batch, heads, dim], dt [batch, heads, dim] and dt_bias [heads, dim] expanded from one number a head, so A [heads,
    dim, dstate]; B and C [batch, groups, dstate], D [heads, dim], z as x; state_batch_indices [batch], on a GPU also -1
    for padding.
    """
    if len(x.shape) != 3:
        raise wrong("selective_state_update: x", "[batch, heads, dim]", f"shape {list(x.shape)}", _MAMBA1)
    index = first_numbers(x, x.shape[0]) if state_batch_indices is None else state_batch_indices
    inputs = _inputs(x[:, None], _one("dt", dt, 1)[:, None], _one("A", A, 2), B[:, None], C[:, None], None,
                     _one("dt_bias", dt_bias, 1), dt_softplus, _NO_LIMIT)
    found = update("mamba2", {"S": state}, index, state_v_first=True, **inputs)
    return _finish(like(found["h"][:, 0], x), x, D, z)


_PLACES = {"mamba_chunk_scan_combined": "mamba_ssm.ops.triton.ssd_combined",
           "selective_state_update": "mamba_ssm.ops.triton.selective_state_update"}
_SWAP = _swap.Swap("mamba_ssm", _PLACES, {name: globals()[name] for name in _PLACES})


def install(strict=False):
    """Puts these functions in the place of mamba_ssm's, in all modules that are loaded, and yields their names. What cannot
    be honoured goes to the peer's own function after a warning; with `strict` the error is raised."""
    return _SWAP.install(strict)


def uninstall():
    """Puts mamba_ssm's functions back."""
    _SWAP.uninstall()
