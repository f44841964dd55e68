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
    return transformers.Qwen3NextForCausalLM(config), {"torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule"}


def kimi_linear():
    config = transformers.KimiLinearConfig(
        **common(), num_attention_heads=2, num_key_value_heads=2, kv_lora_rank=16, qk_rope_head_dim=8, v_head_dim=16,
        qk_nope_head_dim=16, linear_head_dim=WIDTH, linear_num_heads=2, num_experts=4, num_experts_per_token=4,
        moe_intermediate_size=16, layer_types=["linear_attention", "full_attention"])
    return transformers.KimiLinearForCausalLM(config), {"chunk_kimi_delta_attention", "recurrent_kimi_delta_attention"}


def mamba2():
    sizes = common(expand=2, num_heads=4, head_dim=16, state_size=WIDTH, n_groups=2, chunk_size=16)
    del sizes["intermediate_size"]
    config = transformers.Mamba2Config(**sizes)
    return transformers.Mamba2ForCausalLM(config), {"mamba2_chunk_scan", "mamba2_selective_state_update"}


def rms(x):
    return x.double().pow(2).mean().sqrt().item()


def error(found, expected):
    return rms(found - expected) / rms(expected)


class Models(unittest.TestCase):
    def tearDown(self):
        tegula.transformers.uninstall()

    def run_all(self, model, tokens):
        logits = model(tokens).logits
        loss = cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        gradients = torch.autograd.grad(loss, [p for p in model.parameters() if p.requires_grad], allow_unused=True)
        with torch.no_grad():
            made = model.generate(tokens[:, :9], max_new_tokens=6, do_sample=False, output_logits=True,
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

    def test_kimi_linear(self):
        self.agrees(kimi_linear)

    def test_mamba2(self):
        self.agrees(mamba2)
