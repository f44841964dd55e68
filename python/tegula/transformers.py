"""Models of Hugging Face's transformers: `install()` after a model's class is imported.

Its modeling files call a function of their own for each operation, which takes a kernel of the hub, an installed package
or PyTorch; these names are bound to ours. Qwen3-Next, Qwen3.5, OLMo-Hybrid, Kimi-Linear, Mamba-2 and what has their layers.
"""

import functools
import inspect
import sys

from . import fla, mamba
from ._c import wrong

_FUNCTIONS = {"torch_chunk_gated_delta_rule": fla.chunk_gated_delta_rule,
              "torch_recurrent_gated_delta_rule": fla.fused_recurrent_gated_delta_rule,
              "chunk_kimi_delta_attention": fla.chunk_kda,
              "recurrent_kimi_delta_attention": fla.fused_recurrent_kda,
              "mamba2_chunk_scan": mamba.mamba_chunk_scan_combined,
              "mamba2_selective_state_update": mamba.selective_state_update}
_bound = []  # module, name, what it was bound to


def _with_its_arguments(function):
    """What models hand down to attention of all kinds, it does not get."""
    known = {p.name for p in inspect.signature(function).parameters.values() if p.kind != p.VAR_KEYWORD}

    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **{name: value for name, value in kwargs.items() if name in known})

    return call


def install():
    """Yields what is bound to our functions now, as MODULE.NAME."""
    uninstall()
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("transformers.models."):
            for name in _FUNCTIONS.keys() & vars(module).keys():
                _bound.append((module, name, getattr(module, name)))
                setattr(module, name, _with_its_arguments(_FUNCTIONS[name]))
    if not _bound:
        raise wrong("transformers", "a model with layers of linear attention, imported before", "none",
                    "from transformers import Qwen3NextForCausalLM, or the model's class; then install()")
    return sorted(f"{module.__name__}.{name}" for module, name, _ in _bound)


def uninstall():
    """Binds the names to what they were."""
    while _bound:
        setattr(*_bound.pop())
