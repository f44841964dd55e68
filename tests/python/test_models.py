"""Small models of transformers with random weights: logits, gradients and what is generated, by their own path of PyTorch
and by ours."""

import unittest
import warnings

import torch
import transformers
import where
from torch.nn.functional import cross_entropy

import tegula
import tegula.transformers

ON_GPU = isinstance(where.DEVICE, int)
WIDTH, TOKENS = (64, 200) if ON_GPU else (16, 24)
GATED_DELTA = {"torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule"}
KDA = {"chunk_kimi_delta_attention", "recurrent_kimi_delta_attention"}
MAMBA2 = {"mamba2_chunk_scan", "mamba2_selective_state_update"}
LEVEL = 1e-4  # RMS, fp32: several layers deep, and experts that are chosen by what comes in
warnings.filterwarnings("ignore", "torch.jit", DeprecationWarning)
transformers.logging.set_verbosity_error()


def common(**sizes):
    return {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "pad_token_id": None,
            "bos_token_id": 0, "eos_token_id": None, **sizes}


def qwen3_next():
    config = transformers.Qwen3NextConfig(
        **common(num_hidden_layers=4), num_attention_heads=2, num_key_value_heads=1, head_dim=16,
        linear_key_head_dim=WIDTH, linear_value_head_dim=WIDTH, linear_num_key_heads=2, linear_num_value_heads=4,
        num_experts=4, num_experts_per_tok=4, moe_intermediate_size=16, shared_expert_intermediate_size=16)
    return transformers.Qwen3NextForCausalLM(config), GATED_DELTA


def kimi_linear():
    config = transformers.KimiLinearConfig(
        **common(), num_attention_heads=2, num_key_value_heads=2, kv_lora_rank=16, qk_rope_head_dim=8, v_head_dim=16,
        qk_nope_head_dim=16, linear_head_dim=WIDTH, linear_num_heads=2, num_experts=4, num_experts_per_token=4,
        moe_intermediate_size=16, layer_types=["linear_attention", "full_attention"])
    return transformers.KimiLinearForCausalLM(config), KDA


def mamba2():
    sizes = common(expand=2, num_heads=4, head_dim=16, state_size=WIDTH, n_groups=2, chunk_size=16)
    del sizes["intermediate_size"]
    config = transformers.Mamba2Config(**sizes)
    return transformers.Mamba2ForCausalLM(config), MAMBA2


def qwen3_5():
    config = transformers.Qwen3_5TextConfig(
        **common(num_hidden_layers=4), num_attention_heads=2, num_key_value_heads=1, head_dim=16,
        linear_key_head_dim=WIDTH, linear_value_head_dim=WIDTH, linear_num_key_heads=2, linear_num_value_heads=4)
    return transformers.Qwen3_5ForCausalLM(config), GATED_DELTA


def olmo_hybrid():
    """beta goes to 2, and values are wider than keys."""
    config = transformers.OlmoHybridConfig(
        **common(num_hidden_layers=4), num_attention_heads=2, num_key_value_heads=2, linear_num_key_heads=2,
        linear_num_value_heads=2, linear_key_head_dim=WIDTH, linear_value_head_dim=2 * WIDTH)
    return transformers.OlmoHybridForCausalLM(config), GATED_DELTA


def bailing_hybrid():
    """Ling 3: KDA whose decays have a lower bound."""
    config = transformers.BailingHybridConfig(
        **common(), num_attention_heads=2, num_key_value_heads=2, head_dim=WIDTH, kv_lora_rank=16, q_lora_rank=16,
        qk_rope_head_dim=8, v_head_dim=16, qk_nope_head_dim=16, num_experts=4, num_experts_per_tok=4,
        moe_intermediate_size=16, layer_types=["linear_attention", "full_attention"])
    return transformers.BailingHybridForCausalLM(config), KDA


def nemotron_h():
    config = transformers.NemotronHConfig(
        **common(), num_attention_heads=2, num_key_value_heads=1, head_dim=16, mamba_num_heads=4, mamba_head_dim=16,
        ssm_state_size=WIDTH, n_groups=2, chunk_size=16, layers_block_type=["mamba", "attention"])
    return transformers.NemotronHForCausalLM(config), MAMBA2


def xlstm():
    """Gates have no weights at first: they get some."""
    config = transformers.xLSTMConfig(
        vocab_size=64, hidden_size=8 * WIDTH, num_hidden_layers=2, num_heads=4, qk_dim_factor=0.5, chunk_size=8,
        bos_token_id=0, eos_token_id=None, pad_token_id=None, use_cache=False)  # its own has no gradients with one
    model = transformers.xLSTMForCausalLM(config)
    for name, parameter in model.named_parameters():
        if "gate_preact.weight" in name:
            torch.nn.init.normal_(parameter, std=0.3)
        elif "igate_preact.bias" in name:
            torch.nn.init.zeros_(parameter)
    return model, {"forward"}


def minimax():
    config = transformers.MiniMaxConfig(
        **common(), num_attention_heads=2, num_key_value_heads=1, head_dim=WIDTH, block_size=16, num_local_experts=4,
        num_experts_per_tok=4, layer_types=["linear_attention", "full_attention"])
    return transformers.MiniMaxForCausalLM(config), {"forward"}


def rms(x):
    return x.double().pow(2).mean().sqrt().item()


def error(found, expected):
    return rms(found - expected) / rms(expected)


def needs(name):
    return unittest.skipUnless(hasattr(transformers, name), f"transformers {transformers.__version__} has no {name}")


class Models(unittest.TestCase):
    def tearDown(self):
        tegula.transformers.uninstall()

    def run_all(self, model, tokens):
        logits = model(tokens).logits
        loss = cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        gradients = torch.autograd.grad(loss, [p for p in model.parameters() if p.requires_grad], allow_unused=True)
        with torch.no_grad():
            made = model.generate(tokens[:, :9], max_new_tokens=6, do_sample=False, use_cache=True, output_logits=True,
                                  return_dict_in_generate=True)
        return logits, gradients, made

    def agrees(self, make):
        torch.manual_seed(0)
        model, names = make()
        model = model.to(torch.get_default_device()).eval()
        tokens = torch.randint(0, 64, (2, TOKENS))
        logits, gradients, made = self.run_all(model, tokens)
        self.assertEqual({name.split(".")[-1] for name in tegula.transformers.install()} & names, names)
        calls = self.count_calls()
        found = self.run_all(model, tokens)
        self.assertEqual(set(calls), names)
        self.assertLess(error(found[0], logits), LEVEL)
        noise = 1e-6 * max(rms(t) for t in gradients if t is not None)  # of sums that all but cancel
        for (name, _), one, other in zip(model.named_parameters(), found[1], gradients):
            if other is not None:
                self.assertLess(rms(one - other), 10 * LEVEL * rms(other) + noise, name)
        self.assertTrue(torch.equal(found[2].sequences, made.sequences))
        for one, other in zip(found[2].logits, made.logits):
            self.assertLess(error(one, other), LEVEL)

    def count_calls(self):
        """The names that the model calls, from now on."""
        called = []
        for module, name, _ in tegula.transformers._bound:
            def counted(*args, _inner=getattr(module, name), _name=name, **kwargs):
                called.append(_name)
                return _inner(*args, **kwargs)

            setattr(module, name, counted)
        return called

    def test_qwen3_next(self):
        self.agrees(qwen3_next)

    @needs("Qwen3_5ForCausalLM")
    def test_qwen3_5(self):
        self.agrees(qwen3_5)

    @needs("OlmoHybridForCausalLM")
    def test_olmo_hybrid(self):
        self.agrees(olmo_hybrid)

    def test_kimi_linear(self):
        self.agrees(kimi_linear)

    @needs("BailingHybridForCausalLM")
    def test_bailing_hybrid(self):
        self.agrees(bailing_hybrid)

    def test_mamba2(self):
        self.agrees(mamba2)

    @needs("NemotronHForCausalLM")
    def test_nemotron_h(self):
        self.agrees(nemotron_h)

    @needs("xLSTMForCausalLM")
    def test_xlstm(self):
        self.agrees(xlstm)

    @needs("MiniMaxForCausalLM")
    def test_minimax(self):
        self.agrees(minimax)
