"""Mamba-2's mamba_chunk_scan_combined and selective_state_update (mamba_ssm), on tensors of PyTorch or NumPy.

chunk_size is taken and has no effect: the schedule has its own. The kernel makes the gates; what it has not, time steps
without softplus or with a limit, D of two axes and z, is made around it.
"""

from ._shim import call, clamp, expm1, f32, first_numbers, is_tied, like, log, refuse, sigmoid, softplus, update, zeros
from ._c import wrong

_HINTS = {"seq_idx": "pass cu_seqlens, with sequences one behind the other in a batch of 1",
          "return_varlen_states": "with cu_seqlens the final states are those of each sequence",
          "state_dtype": "convert the states, which are float32"}
_NO_LIMIT = (0.0, float("inf"))


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
    return {"Cm": C, "Bm": B, "x": x, "dt_raw": dt, "A_log": log(-A), "scale": 1.0,
            "dt_bias": zeros(A, A.shape) if dt_bias is None else f32(dt_bias),
            "D": zeros(A, A.shape) if D is None else f32(D)}


def _finish(out, x, D, z):
    """What the kernel has not: D of two axes, and the output gate."""
    if D is not None and len(D.shape) == 2:
        out = like(f32(out) + f32(D) * f32(x), x)
    return out if z is None else like(f32(out) * f32(z) * sigmoid(f32(z)), x)


def mamba_chunk_scan_combined(x, dt, A, B, C, chunk_size, D=None, z=None, dt_bias=None, initial_states=None,
                              seq_idx=None, cu_seqlens=None, dt_softplus=False, dt_limit=_NO_LIMIT,
                              return_final_states=False, return_varlen_states=False, state_dtype=None):
    """out [B, L, heads, headdim], or (out, final states [B, heads, headdim, dstate]).

    x [B, L, heads, headdim], dt [B, L, heads], A [heads] negative, B and C [B, L, groups, dstate], D [heads] or
    [heads, headdim], z as x: out silu(z).
    """
    refuse("mamba_chunk_scan_combined", _HINTS, seq_idx=(seq_idx, None),
           return_varlen_states=(return_varlen_states, False), state_dtype=(state_dtype, None))
    if D is not None and len(D.shape) not in (1, 2):
        raise wrong("mamba_chunk_scan_combined: D", "[heads] or [heads, headdim]", f"shape {list(D.shape)}")
    inputs = _inputs(x, dt, A, B, C, D if D is not None and len(D.shape) == 1 else None, dt_bias, dt_softplus, dt_limit)
    found = call("mamba2", return_final_states, cu=cu_seqlens, S0=f32(initial_states), state_v_first=True, **inputs)
    out = _finish(found["h"], x, D, z)
    return (out, found["S"]) if return_final_states else out


def _one(name, x, n):
    """The number of each head, of a tensor that has it n axes long."""
    if x is None:
        return None
    if not is_tied(x, n):
        raise wrong(f"selective_state_update: {name}", "one number a head, expanded (strides of 0), as Mamba-2 has it",
                    f"strides of {n} axes that are not 0")
    return x[(..., *(0,) * n)]


def selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False,
                           state_batch_indices=None):
    """One token: out [batch, heads, dim]; `state` [slots, heads, dim, dstate] is changed in place.

    x [batch, heads, dim], dt [batch, heads, dim] and dt_bias [heads, dim] expanded from one number a head, so A [heads,
    dim, dstate]; B and C [batch, groups, dstate], D [heads, dim], z as x; state_batch_indices [batch], on a GPU also -1
    for padding.
    """
    if len(x.shape) != 3:
        raise wrong("selective_state_update: x", "[batch, heads, dim]", f"shape {list(x.shape)}")
    index = first_numbers(x, x.shape[0]) if state_batch_indices is None else state_batch_indices
    inputs = _inputs(x[:, None], _one("dt", dt, 1)[:, None], _one("A", A, 2), B[:, None], C[:, None], None,
                     _one("dt_bias", dt_bias, 1), dt_softplus, _NO_LIMIT)
    found = update("mamba2", {"S": state}, index, state_v_first=True, **inputs)
    return _finish(found["h"][:, 0], x, D, z)
