"""Simple GLA on arrays of NumPy, by the signature of flash-linear-attention, and the recurrence that it computes."""

import numpy as np
from tegula import fla

q, k, v = np.random.default_rng(0).standard_normal((3, 1, 200, 4, 64), dtype=np.float32)  # [B, T, H, D]
g = np.full((1, 200, 4), -0.05, np.float32)  # the log of each token's decay
o, state = fla.chunk_simple_gla(q, k, v, g, output_final_state=True)

S = np.zeros((4, 64, 64))
for t in range(200):
    S = np.exp(-0.05) * S + k[0, t, :, :, None] * v[0, t, :, None, :]
    np.testing.assert_allclose(o[0, t], np.einsum("hkv,hk->hv", S, q[0, t]) / 8, rtol=2e-4, atol=2e-3)
