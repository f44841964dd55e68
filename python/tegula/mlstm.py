"""Functions with the signatures of mlstm_kernels 2.0, on tensors [B, NH, S, D] of PyTorch or NumPy.

The scale is 1/sqrt(D). Chunk and block sizes are taken and have no effect: the schedule has its own. Gradients are
exact, also of the normaliser.
"""

from ._shim import STEP, call, f32, is_torch, library
from ._c import number, wrong

_BLOCKS = ("chunk_size", "chunk_size_inter", "chunk_size_intra", "siz_b_L_parallel", "siz_b_L_loop",
           "siz_b_DH_parallel", "siz_b_DH_loop", "num_warps_intra", "num_warps_inter", "num_stages_intra",
           "num_stages_inter", "recompute_states_in_bw")


def _check(name, options):
    for option in options:
        if option not in _BLOCKS:
            raise wrong(f"{name}: {option}", "an argument of its signature", repr(option))


def _cast(q, k, v, autocast_kernel_dtype):
    """In a region of torch.autocast q, k and v take the type that is named."""
    if autocast_kernel_dtype is None or not is_torch(q) or not library(q).is_autocast_enabled(q.device.type):
        return q, k, v
    return tuple(x.to(autocast_kernel_dtype) for x in (q, k, v))


def _flat(m):
    """m [B, NH, 1] as the kernels have it."""
    return None if m is None else f32(m).reshape(m.shape[:2])


def _scalars(q, eps):
    return {"scale": q.shape[-1] ** -0.5, "eps": number("eps", eps)}


def _exponential(q, k, v, i, f, C, n, m, return_last_states, eps, step=False):
    found = call("mlstm-exp", return_last_states, "bhtd", step=step, q=q, k=k, v=v, i=f32(i), f=f32(f), C0=f32(C),
                 n0=f32(n), m0=_flat(m), **_scalars(q, eps))
    return (found.h, (found.C, found.n, found.m[..., None])) if return_last_states else found.h


def mlstm_chunkwise__xl_chunk(q, k, v, i, f, c_initial=None, n_initial=None, m_initial=None,
                              return_last_states=False, eps=1e-6, *, autocast_kernel_dtype=None, **blocks):
    """mLSTM with exponential input gate: h, or (h, (C, n, m)) with m [B, NH, 1]."""
    _check("mlstm_chunkwise__xl_chunk", blocks)
    q, k, v = _cast(q, k, v, autocast_kernel_dtype)
    return _exponential(q, k, v, i, f, c_initial, n_initial, m_initial, return_last_states, eps)


def mlstm_siging_chunkwise__xl_chunk(q, k, v, i, f, c_initial=None, n_initial=None, m_initial=None,
                                     return_last_states=False, eps=1e-6, normalize=True, *,
                                     autocast_kernel_dtype=None, **blocks):
    """mLSTM with sigmoid input gate: h, or (h, (C, n)). m_initial has no meaning, as in the peer."""
    name = "mlstm_siging_chunkwise__xl_chunk"
    _check(name, blocks)
    q, k, v = _cast(q, k, v, autocast_kernel_dtype)
    gates = {"i": f32(i), "f": f32(f)}
    if normalize:
        found = call("mlstm-sig-norm", return_last_states, "bhtd", q=q, k=k, v=v, **gates, C0=f32(c_initial),
                     n0=f32(n_initial), **_scalars(q, eps))
        return (found.h, (found.C, found.n)) if return_last_states else found.h
    if return_last_states:
        raise wrong(f"{name}: return_last_states", "False with normalize=False", "True",
                    "without the normaliser n is not computed: tegula.torch.mlstm_sig yields S alone")
    return call("mlstm-sig", False, "bhtd", q=q, k=k, v=v, **gates, S0=f32(c_initial),
                scale=q.shape[-1] ** -0.5).h


def mlstm_sequence(q, k, v, i, f, c_initial=None, n_initial=None, m_initial=None, return_last_states=False, eps=1e-6):
    """The same on a sequence of any length; up to 8 tokens by a decode step."""
    is_step = return_last_states and q.shape[2] <= STEP
    return _exponential(q, k, v, i, f, c_initial, n_initial, m_initial, return_last_states, eps, is_step)


def mlstm_recurrent_step(q, k, v, i, f, c, n, m, eps=1e-6, dtype_state=None, **blocks):
    """One token, as mlstm_recurrent_step__native: q [B, NH, D], i and f [B, NH, 1]; h [B, NH, D], (c, n, m)."""
    _check("mlstm_recurrent_step", blocks)
    h, states = _exponential(q[:, :, None], k[:, :, None], v[:, :, None], i, f, c, n, m, True, eps, True)
    if dtype_state is not None and is_torch(q):
        states = tuple(x.to(dtype_state) for x in states)
    return h[:, :, 0], states


mlstm_recurrent_step__native = mlstm_recurrent_step
