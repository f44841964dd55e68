"""Models of Hugging Face's transformers: `install()` after a model's class is imported.

Its modeling files call a function of their own for each operation, which takes a kernel of the hub, an installed package
or PyTorch, or have a module for it; these names are bound to ours. Qwen3-Next, Qwen3.5, OLMo-Hybrid, Kimi-Linear, Ling 3,
Mamba-2, Nemotron-H, Granite-4, Falcon-H1, Bamba, Zamba2, xLSTM, MiniMax-Text-01 and what has their layers.
"""

import functools
import inspect
import sys

from . import fla, mamba, mlstm
from ._c import wrong

_FUNCTIONS = {"torch_chunk_gated_delta_rule": fla.chunk_gated_delta_rule,
              "torch_recurrent_gated_delta_rule": fla.fused_recurrent_gated_delta_rule,
              "chunk_kimi_delta_attention": fla.chunk_kda,
              "recurrent_kimi_delta_attention": fla.fused_recurrent_kda,
              "mamba2_chunk_scan": mamba.mamba_chunk_scan_combined,
              "mamba2_selective_state_update": mamba.selective_state_update}
_bound = []  # module or class, name, what it was bound to


def _with_its_arguments(function):
    """What models hand down to attention of all kinds, it does not get."""
    known = {p.name for p in inspect.signature(function).parameters.values() if p.kind != p.VAR_KEYWORD}

    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **{name: value for name, value in kwargs.items() if name in known})

    return call


def _mlstm(self, query, key, value, igate, fgate, c_initial=None, n_initial=None, m_initial=None, return_last_states=None,
           mode=None):
    """xLSTMBackend.forward: of any length, in all its modes."""
    is_training = "train" in (mode or self.config.mode)
    if return_last_states is None:
        return_last_states = self.config.return_last_states
    return mlstm.mlstm_recurrent_sequence(query, key, value, igate, fgate, c_initial, n_initial, m_initial,
                                          not is_training or return_last_states, self.config.eps)


def _lightning(self, hidden_states, position_embeddings, attention_mask, past_key_values=None, **_):
    """MiniMaxLightningAttention.forward. The state in the cache is float32, whatever the type of the model."""
    B, T, _ = hidden_states.shape
    qkv = self.act_fn(self.qkv_proj(hidden_states))
    if attention_mask is not None:
        qkv = (qkv * attention_mask[:, :, None]).to(qkv.dtype)
    q, k, v = qkv.reshape(B, T, self.num_attention_heads, -1).split(self.head_dim, -1)
    has_cache = past_key_values is not None
    state = past_key_values.get_linear_cache(self.layer_idx) if has_cache else None
    o, state = fla.fused_recurrent_simple_gla(q, k, v, g_gamma=-self.slope_rate.flatten(), scale=1.0,
                                              initial_state=state, output_final_state=True)
    o = self.output_gate(hidden_states).sigmoid() * self.norm(o.reshape(B, T, -1))
    if has_cache:
        past_key_values.set_linear_cache(self.layer_idx, state)
    return self.out_proj(o), state


_METHODS = {"xLSTMBackend": _mlstm, "MiniMaxLightningAttention": _lightning}


def _bind(owner, name, function):
    _bound.append((owner, name, getattr(owner, name)))
    setattr(owner, name, function)
    return f"{owner.__module__}.{owner.__qualname__}.{name}" if inspect.isclass(owner) else f"{owner.__name__}.{name}"


def install():
    """Yields what is bound to our functions now, as MODULE.NAME or MODULE.CLASS.NAME."""
    uninstall()
    names = []
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("transformers.models."):
            for name in _FUNCTIONS.keys() & vars(module).keys():
                names.append(_bind(module, name, _with_its_arguments(_FUNCTIONS[name])))
            for name in _METHODS.keys() & vars(module).keys():
                names.append(_bind(getattr(module, name), "forward", _METHODS[name]))
    if not names:
        raise wrong("transformers", "a model with layers of linear attention, imported before", "none",
                    "from transformers import Qwen3NextForCausalLM, or the model's class; then install()")
    return sorted(names)


def uninstall():
    """Binds the names to what they were."""
    while _bound:
        setattr(*_bound.pop())
