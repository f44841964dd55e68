"""The peers' signatures on NumPy arrays, against fp64 recurrences."""

import unittest
import warnings

import numpy as np
import tegula
from recurrence import decayed, delta, error, mlstm, mlstm_sig, softplus
from tegula import fla, mamba, mlstm as shim

FP32 = 2e-5
B, H, T, K, V = 2, 2, 20, 16, 24
warnings.filterwarnings("ignore", "there is no GPU", RuntimeWarning)


def turn(x):
    """[B, T, H, ...] to [B, H, T, ...], or back."""
    return x.swapaxes(1, 2)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


class Case(unittest.TestCase):
    def setUp(self):
        self.q, self.k = numbers(B, T, H, K) / 2, numbers(B, T, H, K, seed=1) / 2
        self.v, self.S0 = numbers(B, T, H, V), numbers(B, H, K, V)
        self.g = -0.2 * np.random.default_rng(3).random((B, T, H), np.float32)
        self.gk = -0.2 * np.random.default_rng(4).random((B, T, H, K), np.float32)
        self.beta = np.random.default_rng(5).random((B, T, H), np.float32)

    def agrees(self, found, expected, level=FP32):
        """found (o, state) of a peer's form, expected (h, S)."""
        self.assertLess(error(turn(found[0]), expected[0]), level)
        self.assertLess(error(found[1], expected[1]), level)

    def decayed(self, log_decay, scale=K**-0.5, n=T):
        q, k, v = (turn(x[:, :n]) for x in (self.q, self.k, self.v))
        log_decay = np.asarray(log_decay)
        return decayed(q, k, v, turn(log_decay[:, :n]) if log_decay.ndim > 1 else log_decay, scale, self.S0)

    def delta(self, beta, log_decay=None, **options):
        log_decay = None if log_decay is None else turn(log_decay)
        return delta(turn(self.q), turn(self.k), turn(self.v), turn(beta), K**-0.5, log_decay, self.S0, **options)


class Fla(Case):
    def run_on(self, function, *arguments, **options):
        return function(self.q, self.k, self.v, *arguments, initial_state=self.S0, output_final_state=True, **options)

    def test_simple_gla(self):
        gamma = np.array([-0.1, -0.3], np.float32)
        for given, log_decay in (({"g": self.g}, self.g), ({"g_gamma": gamma}, gamma), ({}, np.zeros(H)),
                                 ({"g": self.g, "g_gamma": gamma}, self.g + gamma)):
            self.agrees(self.run_on(fla.chunk_simple_gla, **given), self.decayed(log_decay))
        self.agrees(self.run_on(fla.chunk_simple_gla, g=self.g, scale=0.3), self.decayed(self.g, 0.3))
        self.assertIsNone(fla.chunk_simple_gla(self.q, self.k, self.v, self.g)[1])

    def test_fused_recurrent_forms_take_steps(self):
        for n in (1, 5, T):
            x = [t[:, :n] for t in (self.q, self.k, self.v)]
            found = fla.fused_recurrent_simple_gla(*x, self.g[:, :n], initial_state=self.S0, output_final_state=True)
            self.agrees(found, self.decayed(self.g, n=n))

    def test_constant_decays(self):
        expected = self.decayed(np.log(1 - 2.0 ** (-5 - np.arange(H))))
        for function in (fla.chunk_retention, fla.fused_recurrent_retention):
            self.agrees(self.run_on(function), expected)
        expected = self.decayed(-8 / H * (1 - 3 / 12) * np.arange(H))
        for function in (fla.chunk_lightning_attn, fla.fused_recurrent_lightning_attn):
            self.agrees(self.run_on(function, layer_idx=3, num_layers=12), expected)
        self.agrees(self.run_on(fla.chunk_linear_attn, normalize=False), self.decayed(np.zeros(H)))

    def test_gla(self):
        expected = self.decayed(self.gk)
        self.agrees(self.run_on(fla.chunk_gla, self.gk), expected)
        self.agrees(self.run_on(fla.fused_recurrent_gla, self.gk), expected)
        gv = -0.2 * np.random.default_rng(8).random((B, T, H, V), np.float32)
        found = self.run_on(fla.fused_recurrent_gla, None, gv)
        turned = decayed(turn(self.q), turn(self.k), turn(self.v), np.zeros(H), 1.0, self.S0)
        self.assertGreater(error(found[1], turned[1]), 0.01)  # the decay of values counts
        S, h = self.S0.astype(np.float64), []
        for t in range(T):
            S = S * np.exp(gv[:, t].astype(np.float64))[:, :, None] + self.k[:, t, :, :, None] * self.v[:, t, :, None]
            h.append(np.einsum("bhkv,bhk->bhv", S, self.q[:, t]) * K**-0.5)
        self.agrees(found, (np.stack(h, 2), S))

    def test_rwkv6(self):
        u, S, h = numbers(H, K), self.S0.astype(np.float64), []
        for t in range(T):
            kv = self.k[:, t, :, :, None] * self.v[:, t, :, None].astype(np.float64)
            h.append(np.einsum("bhkv,bhk->bhv", S + u[..., None] * kv, self.q[:, t]) * K**-0.5)
            S = S * np.exp(self.gk[:, t].astype(np.float64))[..., None] + kv
        for function in (fla.chunk_rwkv6, fla.fused_recurrent_rwkv6):
            self.agrees(self.run_on(function, self.gk, u), (np.stack(h, 2), S))

    def test_delta_rule(self):
        self.agrees(self.run_on(fla.chunk_delta_rule, self.beta), self.delta(self.beta))
        for function in (fla.chunk_delta_rule, fla.fused_recurrent_delta_rule):
            self.agrees(self.run_on(function, self.beta, use_qk_l2norm_in_kernel=True),
                        self.delta(self.beta, unit=True))
        ones = np.ones_like(self.beta)
        self.agrees(self.run_on(fla.fused_recurrent_delta_rule, use_qk_l2norm_in_kernel=True),
                    self.delta(ones, unit=True))

    def test_gated_delta_rule(self):
        A_log, bias = np.array([0.1, -0.2], np.float32), np.array([-2, -3], np.float32)
        raw, raw_beta = numbers(B, T, H, seed=5), numbers(B, T, H, seed=6)
        gate = -np.exp(A_log) * softplus(raw + bias)
        beta = 1 / (1 + np.exp(-raw_beta.astype(np.float64)))
        gates = {"use_gate_in_kernel": True, "A_log": A_log, "dt_bias": bias}
        for function in (fla.chunk_gated_delta_rule, fla.fused_recurrent_gated_delta_rule):
            self.agrees(self.run_on(function, g=self.g, beta=self.beta), self.delta(self.beta, self.g))
            for unit in (False, True):
                found = self.run_on(function, g=raw, beta=raw_beta, use_qk_l2norm_in_kernel=unit,
                                    use_beta_sigmoid_in_kernel=True, allow_neg_eigval=unit, **gates)
                self.agrees(found, self.delta((1 + unit) * beta, gate, unit=unit))
        found = self.run_on(fla.fused_recurrent_gated_delta_rule, gk=self.gk, beta=self.beta)
        self.agrees(found, self.delta(self.beta, self.gk))

    def test_heads_of_values_that_share_keys(self):
        self.q, self.k = self.q[:, :, :1], self.k[:, :, :1]
        self.agrees(self.run_on(fla.chunk_gated_delta_rule, self.g, self.beta), self.delta(self.beta, self.g))
        self.agrees(self.run_on(fla.chunk_kda, self.gk, self.beta), self.delta(self.beta, self.gk))

    def test_kda(self):
        A_log, bias = np.array([0.1, -0.2], np.float32), numbers(H * K) - 3
        raw, raw_beta = numbers(B, T, H, K, seed=5), numbers(B, T, H, seed=6)
        moved = raw + bias.reshape(H, K)
        gates = {None: -np.exp(A_log)[:, None] * softplus(moved),
                 -5.0: -5 / (1 + np.exp(-np.exp(A_log)[:, None] * moved.astype(np.float64)))}
        beta = 1 / (1 + np.exp(-raw_beta.astype(np.float64)))
        for function in (fla.chunk_kda, fla.fused_recurrent_kda):
            self.agrees(self.run_on(function, self.gk, self.beta), self.delta(self.beta, self.gk))
            for lower_bound, gate in gates.items():
                for unit in (False, True):
                    found = self.run_on(function, raw, raw_beta, use_qk_l2norm_in_kernel=unit,
                                        use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True,
                                        lower_bound=lower_bound, A_log=A_log.reshape(1, 1, H, 1), dt_bias=bias)
                    self.agrees(found, self.delta(beta, gate, unit=unit))

    def test_raw_gates_of_kda_keep_their_digits(self):
        """In the type of q they are made into decays in the kernel; those of more digits are not rounded to it."""
        self.q, self.k, self.v = (x.astype(np.float16) for x in (self.q, self.k, self.v))
        raw_beta, A_log, bias = numbers(B, T, H, seed=6), np.zeros(H, np.float32), np.full((H, K), -4096, np.float32)
        raw = 4096 + numbers(B, T, H, K, seed=5)
        beta = 1 / (1 + np.exp(-raw_beta.astype(np.float64)))
        for given in (raw, raw.astype(np.float16)):
            expected = self.delta(beta, -softplus(given.astype(np.float32) - 4096), unit=True)
            found = self.run_on(fla.chunk_kda, given, raw_beta, use_qk_l2norm_in_kernel=True, A_log=A_log, dt_bias=bias,
                                use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True)
            self.agrees(found, expected, 2e-3)

    def test_states_v_first_and_packed_sequences(self):
        S0 = self.S0.swapaxes(-1, -2).copy()
        o, S = fla.chunk_simple_gla(self.q, self.k, self.v, self.g, initial_state=S0, output_final_state=True,
                                    state_v_first=True)
        self.agrees((o, S.swapaxes(-1, -2)), self.decayed(self.g))
        x = [t[:1] for t in (self.q, self.k, self.v, self.g)]
        o, S = fla.chunk_simple_gla(*x, initial_state=self.S0, output_final_state=True, cu_seqlens=np.array([0, 7, T]))
        for n, (b, e) in enumerate(((0, 7), (7, T))):
            expected = decayed(*(turn(t[:, b:e]) for t in x), K**-0.5, self.S0[n : n + 1])
            self.agrees((o[:, b:e], S[n : n + 1]), expected)

    def test_names_of_the_same(self):
        self.agrees(self.run_on(fla.fused_chunk_simple_gla, g=self.g), self.decayed(self.g))
        for one, other, arguments in ((fla.fused_chunk_retention, fla.chunk_retention, ()),
                                      (fla.fused_chunk_linear_attn, fla.chunk_linear_attn, (None, None, False, False))):
            for found, expected in zip(one(self.q, self.k, self.v, *arguments), other(self.q, self.k, self.v, *arguments)):
                np.testing.assert_array_equal(found, expected)
        self.S0 = None
        for found, log_decay in ((fla.parallel_simple_gla(self.q, self.k, self.v, self.g), self.g),
                                 (fla.parallel_retention(self.q, self.k, self.v), np.log(1 - 2.0 ** (-5 - np.arange(H))))):
            self.assertIsNone(found[1])
            self.assertLess(error(turn(found[0]), self.decayed(log_decay)[0]), FP32)

    def test_from_the_last_token(self):
        def flip(*arrays):
            return [x[:, ::-1].copy() for x in arrays]

        u = numbers(H, K)
        for function, gates, more in ((fla.fused_recurrent_simple_gla, (self.g,), ()), (fla.fused_recurrent_rwkv6, (self.gk,), (u,)),
                                      (fla.fused_recurrent_gla, (self.gk, self.gk.repeat(2, -1)[..., :V]), ()),
                                      (fla.fused_recurrent_retention, (), ()), (fla.fused_recurrent_linear_attn, (), ())):
            o, S = function(self.q, self.k, self.v, *gates, *more, initial_state=self.S0, output_final_state=True,
                            reverse=True)
            expected = function(*flip(self.q, self.k, self.v, *gates), *more, initial_state=self.S0,
                                output_final_state=True)
            np.testing.assert_array_equal(*flip(o), expected[0])
            np.testing.assert_array_equal(S, expected[1])
        cu, x = np.array([0, 7, T]), [t[:1] for t in (self.q, self.k, self.v, self.g)]
        o, S = fla.fused_recurrent_simple_gla(*x, initial_state=self.S0, output_final_state=True, cu_seqlens=cu,
                                              reverse=True)
        for n, (b, e) in enumerate(zip(cu, cu[1:])):
            h, last = decayed(*(turn(*flip(t[:, b:e])) for t in x), K**-0.5, self.S0[n : n + 1])
            self.agrees((*flip(o[:, b:e]), S[n : n + 1]), (h, last))

    def test_widths_that_are_no_multiple_of_8(self):
        self.q, self.k, self.v, self.gk = self.q[..., :13], self.k[..., :13], self.v[..., :21], self.gk[..., :13]
        self.S0 = self.S0[:, :, :13, :21].copy()
        x = [turn(t) for t in (self.q, self.k, self.v)]
        for function, arguments, expected in (
            (fla.chunk_gla, (self.gk,), decayed(*x, turn(self.gk), 13**-0.5, self.S0)),
            (fla.chunk_gated_delta_rule, (self.g, self.beta), delta(*x, turn(self.beta), 13**-0.5, turn(self.g), self.S0)),
            (fla.fused_recurrent_kda, (self.gk, self.beta), delta(*x, turn(self.beta), 13**-0.5, turn(self.gk), self.S0)),
        ):
            found = self.run_on(function, *arguments)
            self.assertEqual((found[0].shape, found[1].shape), ((B, T, H, 21), (B, H, 13, 21)))
            self.agrees(found, expected)
        self.S0 = self.S0.swapaxes(-1, -2).copy()
        o, S = self.run_on(fla.chunk_gla, self.gk, state_v_first=True)
        self.agrees((o, S.swapaxes(-1, -2)), decayed(*x, turn(self.gk), 13**-0.5, self.S0.swapaxes(-1, -2)))

    def test_linear_attention_divided_by_its_weights(self):
        """Inputs are positive, so that the weights do not cancel."""
        self.q, self.k, self.S0 = np.abs(self.q), np.abs(self.k), np.abs(self.S0)
        z0 = np.abs(numbers(B, 1, H, K))
        ones = np.ones((B, T, H, 1), np.float32)
        for name, n in (("chunk_linear_attn", T), ("fused_recurrent_linear_attn", 3)):
            q, k, v, one = (turn(t[:, :n]) for t in (self.q, self.k, self.v, ones))
            for S, z in ((self.S0, z0), (None, None)):
                h, last = decayed(q, k, v, np.zeros(H), K**-0.5, S)
                below, sums = decayed(q, k, one, np.zeros(H), K**-0.5, None if z is None else z[:, 0, :, :, None])
                state = None if S is None else (S, z)
                found, (last_S, last_z) = getattr(fla, name)(*(turn(t) for t in (q, k, v)), initial_state=state,
                                                             output_final_state=True, normalize=True)
                self.agrees((found, last_S), (h / below, last))
                self.assertLess(error(last_z, sums[:, None, :, :, 0]), FP32)
        o, (S, z) = fla.chunk_linear_attn(self.q[:1], self.k[:1], self.v[:1], cu_seqlens=np.array([0, 7, T]))
        self.assertEqual((S, z.shape), (None, (2, 1, H, K)))
        alone, _ = fla.chunk_linear_attn(self.q[:1, 7:], self.k[:1, 7:], self.v[:1, 7:])
        self.assertLess(error(o[:, 7:], alone), FP32)

    def test_attention_scores(self):
        log_decay = np.log(1 - 2.0 ** (-5 - np.arange(H)))
        for found, g in ((fla.parallel_simple_gla(self.q, self.k, self.v, self.g, 0.3, output_attentions=True), self.g),
                         (fla.parallel_retention(self.q, self.k, self.v, 0.3, True), np.broadcast_to(log_decay, (B, T, H)))):
            o, scores = found
            b = turn(g.astype(np.float64).cumsum(1))
            wanted = 0.3 * turn(self.q) @ turn(self.k).swapaxes(-1, -2) * np.exp(np.tril(b[..., None] - b[..., None, :]))
            self.assertLess(error(scores, np.tril(wanted)), FP32)
            self.assertLess(error(turn(o), scores @ turn(self.v)), FP32)

    def test_states_between_chunks(self):
        for v_first in (False, True):
            S0 = self.S0.swapaxes(-1, -2).copy() if v_first else self.S0
            o, S, states = fla.chunk_kda(self.q, self.k, self.v, self.gk, self.beta, initial_state=S0, state_v_first=v_first,
                                         output_final_state=True, return_intermediate_states=True, chunk_size=8)
            expected = self.delta(self.beta, self.gk)
            self.agrees((o, S.swapaxes(-1, -2) if v_first else S), expected)
            self.assertEqual(states.shape, (B, 3, *S0.shape[1:]))
            np.testing.assert_array_equal(states[:, 0], S0)
            x = [t[:, :16] for t in (self.q, self.k, self.v, self.gk, self.beta)]
            at_16 = fla.chunk_kda(*x, initial_state=S0, state_v_first=v_first, output_final_state=True)[1]
            self.assertLess(error(states[:, 2], at_16), FP32)
        x = [t[:1] for t in (self.q, self.k, self.v, self.gk, self.beta)]
        cu, lengths = np.array([0, 7, 7, T]), (7, 0, T - 7)
        starts = {"initial_state": numbers(3, H, K, V), "output_final_state": True}
        o, S, states = fla.chunk_kda(*x, cu_seqlens=cu, **starts, return_intermediate_states=True, chunk_size=4)
        wanted = fla.chunk_kda(*x, cu_seqlens=cu, **starts)
        self.assertLess(error(o, wanted[0]), FP32)
        self.assertLess(error(S, wanted[1]), FP32)
        at = [(n, t) for n, length in enumerate(lengths) for t in range(0, length, 4)]
        self.assertEqual(states.shape[:2], (1, len(at)))
        for i, (n, t) in enumerate(at):
            state = starts["initial_state"][n : n + 1]
            if t:
                begin = cu[n]
                state = fla.chunk_kda(*(y[:, begin : begin + t] for y in x), initial_state=state, output_final_state=True)[1]
            self.assertLess(error(states[:, i], state), FP32)
        self.assertIsNone(fla.chunk_kda(*x, return_intermediate_states=True)[1])

    def test_values_of_another_type(self):
        self.v = self.v.astype(np.float16)
        found = self.run_on(fla.chunk_simple_gla, g=self.g)
        self.assertEqual(found[0].dtype, np.float16)
        self.agrees(found, self.decayed(self.g), 1e-3)

    def test_old_names(self):
        S0 = self.S0.swapaxes(-1, -2).copy()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _, S = fla.chunk_retention(self.q, self.k, self.v, initial_state=S0, output_final_state=True,
                                       transpose_state_layout=True)
        self.assertTrue(any(w.category is DeprecationWarning for w in caught))
        self.assertEqual(S.shape, S0.shape)
        with self.assertRaises(tegula.Error), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fla.chunk_simple_gla(self.q, self.k, self.v, state_v_first=True, transpose_state_layout=True)

    def test_what_cannot_be_honoured(self):
        qkv = (self.q, self.k, self.v)
        for field, call in (
            ("chunk_simple_gla: head_first", lambda: fla.chunk_simple_gla(*qkv, head_first=True)),
            ("chunk_simple_gla: colour", lambda: fla.chunk_simple_gla(*qkv, colour=1)),
            ("parallel_retention: cu_seqlens",
             lambda: fla.parallel_retention(*(x[:1] for x in qkv), output_attentions=True, cu_seqlens=np.array([0, T]))),
            ("chunk_kda: A_log", lambda: fla.chunk_kda(*qkv, self.gk, self.beta, use_gate_in_kernel=True)),
            ("chunk_kda: lower_bound",
             lambda: fla.chunk_kda(*qkv, self.gk, self.beta, safe_gate=True, use_gate_in_kernel=True)),
            ("chunk_gated_delta_rule: cp_context",
             lambda: fla.chunk_gated_delta_rule(*qkv, self.g, self.beta, cp_context=self)),
            ("fused_recurrent_gated_delta_rule: gv",
             lambda: fla.fused_recurrent_gated_delta_rule(*qkv, gv=self.v)),
            (": scale", lambda: fla.chunk_simple_gla(*qkv, scale="small")),
            (": array", lambda: fla.chunk_simple_gla(*qkv, initial_state=3)),
            ("chunk_simple_gla: head_first", lambda: fla.chunk_retention(*qkv, chunk_size=64, head_first=True)),
        ):
            with self.assertRaises(tegula.Error) as caught:
                call()
            self.assertEqual(caught.exception.field.split(": ")[-1], field.split(": ")[1], str(caught.exception))


class Mlstm(Case):
    def setUp(self):
        super().setUp()
        self.x = [turn(t).copy() for t in (self.q, self.k, self.v)]
        self.i, self.f = numbers(B, H, T, seed=6), numbers(B, H, T, seed=7) + 2
        self.n0, self.m0 = numbers(B, H, K), numbers(B, H)

    def test_exponential_gate(self):
        h, (C, n, m) = shim.mlstm_chunkwise__xl_chunk(*self.x, self.i, self.f, self.S0, self.n0, self.m0[..., None],
                                                      return_last_states=True, chunk_size=128)
        self.assertEqual(m.shape, (B, H, 1))
        expected = mlstm(*self.x, self.i, self.f, K**-0.5, self.S0, self.n0, self.m0, eps=1e-6)
        for found, wanted in zip((h, C, n, m[..., 0]), expected):
            self.assertLess(error(found, wanted), 4 * FP32)
        np.testing.assert_array_equal(
            shim.mlstm_chunkwise__xl_chunk(*self.x, self.i, self.f, self.S0, self.n0, self.m0), h)

    def test_widths_that_are_no_multiple_of_8(self):
        x = [t[..., :n] for t, n in zip(self.x, (13, 13, 21))]
        h, (C, n, m) = shim.mlstm_chunkwise__xl_chunk(*x, self.i, self.f, return_last_states=True)
        for found, wanted in zip((h, C, n, m[..., 0]), mlstm(*x, self.i, self.f, 13**-0.5, eps=1e-6)):
            self.assertLess(error(found, wanted), 4 * FP32)

    def test_step(self):
        x = [t[:, :, 0] for t in self.x]
        h, (C, n, m) = shim.mlstm_recurrent_step(*x, self.i[..., :1], self.f[..., :1], self.S0, self.n0,
                                                 self.m0[..., None])
        expected = mlstm(*(t[:, :, :1] for t in (*self.x, self.i, self.f)), K**-0.5, self.S0, self.n0, self.m0, 1e-6)
        for found, wanted in zip((h[:, :, None], C, n, m[..., 0]), expected):
            self.assertLess(error(found, wanted), 4 * FP32)

    def test_sigmoid_gate(self):
        for normalize in (True, False):
            h, *_ = mlstm_sig(*self.x, self.i, self.f, K**-0.5, normalize, self.S0, self.n0, 1e-6)
            found = shim.mlstm_siging_chunkwise__xl_chunk(*self.x, self.i, self.f, self.S0, self.n0,
                                                          normalize=normalize)
            self.assertLess(error(found, h), FP32)
        _, (C, n) = shim.mlstm_siging_chunkwise__xl_chunk(*self.x, self.i, self.f, self.S0, self.n0,
                                                          return_last_states=True)
        expected = mlstm_sig(*self.x, self.i, self.f, K**-0.5, True, self.S0, self.n0)
        self.assertLess(error(C, expected[1]), FP32)
        self.assertLess(error(n, expected[2]), FP32)

    def test_sigmoid_gate_without_normaliser_has_its_state(self):
        for S0, n0 in ((self.S0, self.n0), (None, None), (self.S0, None)):
            h, (C, n) = shim.mlstm_siging_chunkwise__xl_chunk(*self.x, self.i, self.f, S0, n0, return_last_states=True,
                                                              normalize=False)
            expected = mlstm_sig(*self.x, self.i, self.f, K**-0.5, False, S0, n0)
            self.assertLess(error(h, expected[0]), FP32)
            for found, wanted in zip((C, n), mlstm_sig(*self.x, self.i, self.f, K**-0.5, True, S0, n0)[1:]):
                self.assertLess(error(found, wanted), FP32)

    def test_sequences_of_any_length(self):
        for n in (3, T):
            x = [t[:, :, :n] for t in (*self.x, self.i, self.f)]
            found = shim.mlstm_recurrent_sequence(*x, self.S0, self.n0, self.m0[..., None], return_last_states=True)
            expected = mlstm(*x, K**-0.5, self.S0, self.n0, self.m0, eps=1e-6)
            for one, wanted in zip((found[0], *found[1][:2], found[1][2][..., 0]), expected):
                self.assertLess(error(one, wanted), 4 * FP32)

    def test_what_cannot_be_honoured(self):
        with self.assertRaises(tegula.Error):
            shim.mlstm_chunkwise__xl_chunk(*self.x, self.i, self.f, chunk=64)


class Mamba(Case):
    def setUp(self):
        super().setUp()
        self.A = -np.array([0.5, 2, 0.3, 1], np.float32)
        self.x, self.dt = numbers(B, T, 4, V), numbers(B, T, 4)
        self.bias, self.D = numbers(4) - 1, numbers(4)
        self.S0 = numbers(B, 4, V, K)  # V-first

    def expected(self, dt, D, z=None):
        C, B_, x, dt = (turn(t).astype(np.float64) for t in (self.q, self.k, self.x, dt))
        h, S = decayed(C, B_, x, dt * self.A[:, None], 1.0, self.S0.swapaxes(-1, -2), np.log(dt))
        h = turn(h) + D * self.x
        return (h if z is None else h * z / (1 + np.exp(-z.astype(np.float64)))), S.swapaxes(-1, -2)

    def scan(self, **options):
        return mamba.mamba_chunk_scan_combined(self.x, self.dt, self.A, self.k, self.q, 64, **options)

    def test_against_the_recurrence(self):
        wide, z = numbers(4, V), numbers(B, T, 4, V, seed=9)
        soft = softplus(self.dt + self.bias)
        for D, limit, gate in ((self.D, (0.0, float("inf")), None), (wide, (0.1, 0.5), z)):
            found = self.scan(D=D, z=gate, dt_bias=self.bias, dt_softplus=True, dt_limit=limit,
                              initial_states=self.S0, return_final_states=True)
            wanted = self.expected(np.clip(soft, *limit), D if D.ndim == 2 else D[:, None], gate)
            self.assertLess(error(found[0], wanted[0]), FP32)
            self.assertLess(error(found[1], wanted[1]), FP32)
        self.dt = np.abs(self.dt) + 0.01
        found = self.scan(initial_states=self.S0)
        self.assertLess(error(found, self.expected(self.dt, 0)[0]), FP32)

    def test_step(self):
        def expanded(x, *axes):
            return np.broadcast_to(x[(..., *(None,) * len(axes))], x.shape + axes)

        pool, slots = numbers(5, 4, V, K), np.array([3, 1])
        dt, bias, D, z = self.dt[:, 0], self.bias, numbers(4, V), numbers(B, 4, V, seed=9)
        for index in (slots, None):
            state = pool.copy() if index is not None else pool[slots].copy()
            self.S0 = pool[slots]
            found = mamba.selective_state_update(
                state, self.x[:, 0], expanded(dt, V), expanded(self.A, V, K), self.k[:, 0], self.q[:, 0], D, z,
                expanded(bias, V), True, index)
            self.x, self.q, self.k = self.x[:, :1], self.q[:, :1], self.k[:, :1]
            out, S = self.expected(softplus(dt + bias)[:, None], D, z[:, None])
            self.assertLess(error(found, out[:, 0]), FP32)
            self.assertLess(error(state[slots] if index is not None else state, S), FP32)
        with self.assertRaises(tegula.Error) as caught:
            mamba.selective_state_update(state, self.x[:, 0], numbers(B, 4, V), expanded(self.A, V, K), self.k[:, 0],
                                         self.q[:, 0])
        self.assertIn("dt", caught.exception.field)

    def test_sequences_of_a_batch(self):
        """By seq_idx, each alone; the state is that of a row's last, and the initial one belongs to its first."""
        self.dt = np.abs(self.dt) + 0.01
        bounds = ((0, 7, T), (0, 3, 4, T))
        seq_idx = np.array([[sum(t >= b for b in row[1:]) for t in range(T)] for row in bounds], np.int32)
        out, S = self.scan(initial_states=self.S0, return_final_states=True, seq_idx=seq_idx, z=self.x, state_dtype="float32")
        for row, begins in enumerate(bounds):
            for b, e in zip(begins, begins[1:]):
                x = [t[row : row + 1, b:e] for t in (self.x, self.dt, self.k, self.q)]
                S0 = self.S0[row : row + 1] if b == 0 else None
                alone = mamba.mamba_chunk_scan_combined(*x[:2], self.A, *x[2:], 64, z=x[0], initial_states=S0,
                                                        return_final_states=True)
                self.assertLess(error(out[row : row + 1, b:e], alone[0]), FP32)
            self.assertLess(error(S[row : row + 1], alone[1]), FP32)

    def test_states_of_packed_sequences(self):
        cu = np.array([0, 7, T])
        self.x, self.dt, self.k, self.q = (t[:1] for t in (self.x, np.abs(self.dt) + 0.01, self.k, self.q))
        out, S = self.scan(cu_seqlens=cu, return_final_states=True)
        idx = (np.arange(T) >= 7)[None].astype(np.int32)
        found = self.scan(cu_seqlens=cu, seq_idx=idx, return_final_states=True, return_varlen_states=True)
        for one, wanted in zip(found, (out, S[1:], S)):
            self.assertLess(error(one, wanted), FP32)
        self.assertEqual(len(self.scan(cu_seqlens=cu, return_varlen_states=True)), 2)

    def test_what_cannot_be_honoured(self):
        for options, field in (({"seq_idx": np.zeros((B, T - 1))}, "seq_idx"), ({"return_varlen_states": True}, "cu_seqlens"),
                               ({"D": numbers(1, 1, 4)}, "D")):
            with self.assertRaises(tegula.Error) as caught:
                self.scan(**options)
            self.assertIn(field, caught.exception.field)
