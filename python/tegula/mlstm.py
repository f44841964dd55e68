"""Functions with the signatures of mlstm_kernels 2.0, on tensors [B, NH, S, D] of PyTorch or NumPy.

The scale is 1/sqrt(D). Chunk and block sizes, and other hints that change no result, are taken and have no effect: the
schedule has its own. Sequences have any length. Gradients are exact, also of the normaliser.
"""

from . import _swap
from ._shim import STEP, beside, call, f32, is_torch, library, like, zeros
from ._c import number, wrong

_BLOCKS = ("chunk_size", "chunk_size_inter", "chunk_size_intra", "siz_b_L_parallel", "siz_b_L_loop",
           "siz_b_DH_parallel", "siz_b_DH_loop", "num_warps_intra", "num_warps_inter", "num_stages_intra",
           "num_stages_inter", "recompute_states_in_bw", "siz_b_DHQK", "siz_b_DHHV", "num_warps", "num_stages")


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
    i, f = f32(i), f32(f)
    if not normalize:
        return _unnormalized(q, k, v, i, f, c_initial, n_initial, return_last_states)
    found = call("mlstm-sig-norm", return_last_states, "bhtd", q=q, k=k, v=v, i=i, f=f, C0=f32(c_initial),
                 n0=f32(n_initial), **_scalars(q, eps))
    return (found.h, (found.C, found.n)) if return_last_states else found.h


def _unnormalized(q, k, v, i, f, C, n, return_last_states):
    """A column of ones beside v becomes n in the state."""
    V = v.shape[-1]
    if return_last_states:
        if C is not None or n is not None:
            C = zeros(v, (*k.shape[:2], k.shape[-1], V)) if C is None else f32(C)
            n = zeros(v, C.shape[:-1]) if n is None else f32(n)
            C = beside(C, n[..., None])
        v = beside(v, like(zeros(v, (*v.shape[:-1], 1)) + 1, v))
    found = call("mlstm-sig", return_last_states, "bhtd", q=q, k=k, v=v, i=i, f=f, S0=f32(C), scale=q.shape[-1] ** -0.5)
    return (found.h[..., :V], (found.S[..., :V], found.S[..., V])) if return_last_states else found.h


def _typed(states, dtype):
    return states if dtype is None or not is_torch(states[0]) else tuple(x.to(dtype) for x in states)


def mlstm_recurrent_sequence(q, k, v, i, f, c_initial=None, n_initial=None, m_initial=None, return_last_states=False,
                             eps=1e-6, dtype_state=None, **blocks):
    """mLSTM with exponential input gate, as mlstm_recurrent_sequence__native_fw; up to 8 tokens by a decode step."""
    _check("mlstm_recurrent_sequence", blocks)
    is_step = return_last_states and q.shape[2] <= STEP
    found = _exponential(q, k, v, i, f, c_initial, n_initial, m_initial, return_last_states, eps, is_step)
    return (found[0], _typed(found[1], dtype_state)) if return_last_states else found


def mlstm_recurrent_step(q, k, v, i, f, c, n, m, eps=1e-6, dtype_state=None, **blocks):
    """One token, as mlstm_recurrent_step__native: q [B, NH, D], i and f [B, NH, 1]; h [B, NH, D], (c, n, m)."""
    _check("mlstm_recurrent_step", blocks)
    h, states = _exponential(q[:, :, None], k[:, :, None], v[:, :, None], i, f, c, n, m, True, eps, True)
    return h[:, :, 0], _typed(states, dtype_state)


mlstm_chunkwise__limit_chunk = mlstm_parallel__limit_headdim = mlstm_chunkwise__xl_chunk
mlstm_recurrent_step__native = mlstm_recurrent_step__triton = mlstm_recurrent_step
mlstm_recurrent_sequence__native_fw = mlstm_recurrent_sequence__triton_step_fused_fw = mlstm_recurrent_sequence
_PLACES = {"mlstm_chunkwise__limit_chunk": "mlstm_kernels.torch.chunkwise",
           "mlstm_chunkwise__xl_chunk": "mlstm_kernels.torch.chunkwise",
           "mlstm_siging_chunkwise__xl_chunk": "mlstm_kernels.torch.chunkwise",
           "mlstm_parallel__limit_headdim": "mlstm_kernels.torch.parallel",
           "mlstm_recurrent_step__triton": "mlstm_kernels.torch.recurrent",
           "mlstm_recurrent_sequence__triton_step_fused_fw": "mlstm_kernels.torch.recurrent"}
_SWAP = _swap.Swap("mlstm_kernels", _PLACES, {name: globals()[name] for name in _PLACES})


def install(strict=False):
    """Puts these functions in the place of the kernels of mlstm_kernels in Triton, in all modules that are loaded and in its
    registries, and yields their names. What cannot be honoured goes to the peer's own function after a warning; with
    `strict` the error is raised."""
    return _SWAP.install(strict)


def uninstall():
    """Puts the functions of mlstm_kernels back."""
    _SWAP.uninstall()
