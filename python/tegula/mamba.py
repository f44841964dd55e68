"""Mamba-2's mamba_chunk_scan_combined (mamba_ssm), on tensors [B, L, heads, headdim] of PyTorch or NumPy.

chunk_size is taken and has no effect: the schedule has its own. The kernel makes the gates; what it has not, time steps
without softplus or with a limit, D of two axes and z, is made around it.
"""

from ._shim import call, clamp, expm1, f32, like, log, refuse, sigmoid, softplus, zeros
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


def _scan(x, dt, A, B, C, D, dt_bias, dt_softplus, dt_limit, **rest):
    """h and the final state; D [heads] or None."""
    dt, A = f32(dt), f32(A)
    if not dt_softplus or tuple(dt_limit) != _NO_LIMIT:
        dt, dt_bias = _raw(dt, dt_bias, dt_softplus, dt_limit), None
    return call("mamba2", Cm=C, Bm=B, x=x, dt_raw=dt, A_log=log(-A), scale=1.0,
                dt_bias=zeros(A, A.shape) if dt_bias is None else f32(dt_bias),
                D=zeros(A, A.shape) if D is None else f32(D), **rest)


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
    wide = D is not None and len(D.shape) == 2
    found = _scan(x, dt, A, B, C, None if wide else D, dt_bias, dt_softplus, dt_limit, S0=f32(initial_states), state_v_first=True,
                  final_state=return_final_states, cu=cu_seqlens)
    out = found["h"]
    if wide:
        out = like(f32(out) + f32(D) * f32(x), x)
    if z is not None:
        out = like(f32(out) * f32(z) * sigmoid(f32(z)), x)
    return (out, found["S"]) if return_final_states else out
