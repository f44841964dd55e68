"""The arguments of the peers' functions: all are there in the peers' order, and do what the table of docs/python.md says."""

import inspect
import os
import re
import unittest
import warnings

import numpy as np
import tegula
from tegula import fla, mamba, mlstm

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "python.md")
STATE = "scale initial_state output_final_state"
DELTA = f"{STATE} use_qk_l2norm_in_kernel"
MLSTM = "q k v i f c_initial n_initial m_initial return_last_states eps"
BLOCKS = ("chunk_size chunk_size_inter chunk_size_intra siz_b_L_parallel siz_b_L_loop siz_b_DH_parallel siz_b_DH_loop "
          "num_warps_intra num_warps_inter num_stages_intra num_stages_inter recompute_states_in_bw")
# What may be given by place; after a bar what only has a name, or is taken out of **kwargs. As flash-linear-attention 0.6,
# mlstm_kernels 2.0.6 and mamba_ssm have them.
SIGNATURES = {
    "chunk_simple_gla": f"q k v g g_gamma {STATE} state_v_first cu_seqlens cu_seqlens_cpu | chunk_size",
    "fused_recurrent_simple_gla": f"q k v g g_gamma {STATE} reverse state_v_first cu_seqlens",
    "fused_chunk_simple_gla": f"q k v g g_gamma {STATE} cu_seqlens",
    "parallel_simple_gla": "q k v g scale output_attentions cu_seqlens cu_seqlens_cpu",
    "chunk_lightning_attn": f"q k v layer_idx num_layers {STATE} cu_seqlens | chunk_size",
    "fused_recurrent_lightning_attn": f"q k v layer_idx num_layers {STATE} reverse cu_seqlens",
    "chunk_retention": f"q k v {STATE} cu_seqlens | chunk_size",
    "fused_recurrent_retention": f"q k v {STATE} reverse cu_seqlens",
    "fused_chunk_retention": f"q k v {STATE} cu_seqlens",
    "parallel_retention": "q k v scale output_attentions cu_seqlens",
    "chunk_linear_attn": f"q k v {STATE} normalize cu_seqlens",
    "fused_chunk_linear_attn": f"q k v {STATE} normalize cu_seqlens",
    "fused_recurrent_linear_attn": f"q k v {STATE} reverse normalize cu_seqlens",
    "chunk_gla": f"q k v g {STATE} state_v_first cu_seqlens cu_seqlens_cpu",
    "fused_recurrent_gla": f"q k v gk gv {STATE} reverse state_v_first cu_seqlens",
    "chunk_rwkv6": f"r k v w u {STATE} cu_seqlens cu_seqlens_cpu | chunk_size",
    "fused_recurrent_rwkv6": f"r k v w u {STATE} reverse cu_seqlens",
    "chunk_delta_rule": f"q k v beta {DELTA} cu_seqlens cu_seqlens_cpu | chunk_size",
    "fused_recurrent_delta_rule": f"q k v beta {DELTA} cu_seqlens",
    "chunk_gated_delta_rule": f"q k v g beta {DELTA} use_beta_sigmoid_in_kernel allow_neg_eigval state_v_first cu_seqlens "
                              "cu_seqlens_cpu chunk_indices cp_context | use_gate_in_kernel A_log dt_bias chunk_size",
    "fused_recurrent_gated_delta_rule": f"q k v g gk gv beta {DELTA} use_gate_in_kernel A_log dt_bias "
                                        "use_beta_sigmoid_in_kernel allow_neg_eigval state_v_first cu_seqlens",
    "chunk_kda": f"q k v g beta {DELTA} use_gate_in_kernel use_beta_sigmoid_in_kernel allow_neg_eigval safe_gate lower_bound "
                 "disable_recompute return_intermediate_states state_v_first cu_seqlens cu_seqlens_cpu cp_context use_graph "
                 "max_num_seqs | A_log dt_bias chunk_size",
    "fused_recurrent_kda": f"q k v g beta A_log dt_bias {DELTA} use_gate_in_kernel use_beta_sigmoid_in_kernel "
                           "allow_neg_eigval lower_bound state_v_first cu_seqlens",
    "mlstm_chunkwise__xl_chunk": f"{MLSTM} | {BLOCKS} autocast_kernel_dtype",
    "mlstm_chunkwise__limit_chunk": f"{MLSTM} | chunk_size autocast_kernel_dtype",
    "mlstm_parallel__limit_headdim": f"{MLSTM} | autocast_kernel_dtype",
    "mlstm_siging_chunkwise__xl_chunk": f"{MLSTM} normalize | {BLOCKS} autocast_kernel_dtype",
    "mlstm_recurrent_sequence": f"{MLSTM} dtype_state",
    "mlstm_recurrent_step": "q k v i f c n m eps dtype_state",
    "mamba_chunk_scan_combined": "x dt A B C chunk_size D z dt_bias initial_states seq_idx cu_seqlens dt_softplus dt_limit "
                                 "return_final_states return_varlen_states state_dtype",
    "selective_state_update": "state x dt A B C D z dt_bias dt_softplus state_batch_indices",
}
VALUES = {"cu_seqlens_cpu": np.array([0, 12]), "chunk_indices": np.zeros((1, 2), int), "disable_recompute": True,
          "use_graph": True, "max_num_seqs": 3, "chunk_size": 32, "m_initial": np.ones((1, 2, 1), np.float32),
          "recompute_states_in_bw": False, "state_dtype": "float16", "head_first": True,
          "gv": np.zeros((1, 12, 2, 16), np.float32)}
warnings.filterwarnings("ignore", "there is no GPU", RuntimeWarning)


def function(name):
    return next(getattr(module, name) for module in (fla, mlstm, mamba) if hasattr(module, name))


def names(cell):
    return re.findall(r"`(\w+)`", cell)


def table():
    """Of docs/python.md: {function: (as it says, changes no result, refused)}."""
    with open(PAGE) as page:
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page if line.startswith("| `")]
    found = {}
    for row in rows:
        if len(row) == 4:
            found.update((name, row[1:]) for name in names(row[0]))
    return found


class Signatures(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(0)
        self.made = {name: rng.standard_normal((1, 12, 2, 16), dtype=np.float32) / 4 for name in ("q", "k", "v", "r", "x", "z")}
        self.made.update(B=self.made["k"], C=self.made["q"], w=-np.abs(self.made["q"]), u=self.made["k"][0, 0], layer_idx=1,
                         num_layers=4, A=-np.ones(2, np.float32), dt=np.ones((1, 12, 2), np.float32), chunk_size=64)
        self.made["beta"] = rng.random((1, 12, 2), dtype=np.float32)

    def run_on(self, name, **options):
        """With as few arguments as it can do."""
        of, given = function(name), {}
        for parameter in inspect.signature(of).parameters.values():
            if parameter.name == "g":
                given["g"] = -self.made["beta"] if "kda" not in name and "_gla" not in name or "simple" in name else self.made["w"]
            elif parameter.name in ("i", "f"):
                given[parameter.name] = self.made["beta"].swapaxes(1, 2)
            elif parameter.default is parameter.empty and parameter.name in self.made:
                given[parameter.name] = self.made[parameter.name]
        if "mlstm" in name:
            given.update((x, given[x].swapaxes(1, 2)) for x in "qkv")
        found = of(**{**given, **options})
        return found[0] if isinstance(found, tuple) else found

    def test_the_table_has_all_of_them(self):
        found = table()
        self.assertEqual(found.keys(), SIGNATURES.keys())
        for name, row in found.items():
            told = {x for cell in row for x in names(cell)} | {"q", "k", "v", "r"}
            if "blocks" in row[1]:
                told |= set(BLOCKS.split())
            expected = set(SIGNATURES[name].replace("|", "").split())
            self.assertLessEqual(expected, told, name)
            self.assertLessEqual(told - {"head_first", "q", "k", "v", "r"}, expected | set(BLOCKS.split()), name)

    def test_order_and_names(self):
        for name, text in SIGNATURES.items():
            by_place, _, by_name = text.partition("|")
            signature = inspect.signature(function(name))
            places = [p.name for p in signature.parameters.values() if p.kind == p.POSITIONAL_OR_KEYWORD]
            self.assertEqual(places[: len(by_place.split())], by_place.split(), name)
            signature.bind(**dict.fromkeys([*by_place.split(), *by_name.split()]))

    def test_what_changes_no_result(self):
        for name, (_, no_change, _) in table().items():
            hints = names(no_change)
            if not hints or name == "selective_state_update":
                continue
            expected = self.run_on(name)
            for hint in hints:
                with self.subTest(function=name, hint=hint):
                    np.testing.assert_array_equal(self.run_on(name, **{hint: VALUES[hint]}), expected)

    def test_what_is_refused(self):
        n = 0
        for name, (_, _, refused) in table().items():
            for option in set(names(refused)) & {"gv", "head_first"}:
                with self.subTest(function=name, option=option), self.assertRaises(tegula.Error) as caught:
                    self.run_on(name, **{option: VALUES[option]})
                self.assertIn(option, caught.exception.field)
                n += 1
            if "`output_attentions` with" in refused:
                with self.assertRaises(tegula.Error):
                    self.run_on(name, output_attentions=True, cu_seqlens=np.array([0, 12]))
        self.assertGreater(n, 10)
