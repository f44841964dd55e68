"""How states go through tokens: what a variant's piece makes of the state that comes in, and how pieces are put together.

Of a piece a record is known: its states from a zero initial state, and its transition, float32. States are put together
in float64, in the order of the fragments, so that every rank gets the same bits. In the other direction the same is done
with gradients of states.
"""

import torch
from torch.nn.functional import logsigmoid, softplus

from ._c import wrong

class Decays:
    """S -> D S, with the logs of decays of a head, of its keys and of its values. `logs` yields them of each token, on
    gates [rows, T, NH, ...], by the axes that they have."""

    zero = {}  # states that are no zeros where nothing has come in
    needs = ()  # states that the backward needs
    has_back_states = True  # gradients of initial states are made by a program without the others

    def __init__(self, **logs):
        self.logs = logs

    def parts(self, sizes):
        """The shapes of a row of the transition."""
        return {axis: (sizes["NH"],) if axis == "head" else (sizes["NH"], sizes[axis]) for axis in self.logs}

    def transition(self, gates, scalars, shape, _probe):
        """[rows, NH, ...] by name; shape: [rows, T, NH] of the piece."""
        found = {}
        for axis, log in self.logs.items():
            of_tokens = log(gates, scalars)
            found[axis] = of_tokens.expand(*shape, *of_tokens.shape[3:]).sum(1, dtype=torch.float64)
        return found

    def through(self, transition, states, axes, _back):
        """States by name, behind a piece with this transition, but for what the piece itself adds."""
        return {name: self.decayed(transition, x, axes[name]) for name, x in states.items()}

    def decayed(self, transition, x, axes):
        for axis, log in transition.items():
            if axis == "head" or axis in axes:
                x = x * log.exp().reshape([n if i < 2 or axes[i] == axis else 1 for i, n in enumerate(x.shape)])
        return x

    def joined(self, carried, own):
        return {name: carried[name] + own[name] for name in own}

    def back(self, transition, _fragment, _before, _behind):
        """The transition of the gradients; _before and _behind: states of rows, as arguments and as results."""
        return transition


class Normalised(Decays):
    """With a normaliser, whose gradient is made of whole rows: no faster without what they are rows of."""

    has_back_states = False


class Maximum(Normalised):
    """mlstm-exp: C and n are times e^-m, and m is the largest gate so far, decayed."""

    zero, needs = {"m": -1e30}, ("m",)

    def through(self, transition, states, axes, back):
        if back:
            return super().through(transition, states, axes, back)
        return {**states, "m": states["m"] + transition["head"]}

    def joined(self, carried, own):
        if "m" not in own:
            return super().joined(carried, own)
        m = torch.maximum(carried["m"], own["m"])
        parts = [(x, (x["m"] - m).exp()) for x in (carried, own)]
        return {"m": m, **{name: sum(x[name] * w.reshape(*w.shape, *(1,) * (x[name].dim() - 2)) for x, w in parts)
                           for name in own if name != "m"}}

    def back(self, transition, fragment, before, behind):
        return {"head": transition["head"] + before["m0"][fragment.first].double() - behind["m"][fragment.last].double()}


class Delta(Decays):
    """S -> M S with M [dqk, dqk]: what the forward makes of the identity where there are no values."""

    def parts(self, sizes):
        return {"matrix": (sizes["NH"], sizes["dqk"], sizes["dqk"])}

    def transition(self, _gates, _scalars, _shape, probe):
        return {"matrix": probe()}

    def through(self, transition, states, _axes, back):
        M = transition["matrix"]
        return {name: (M.mT if back else M) @ x for name, x in states.items()}


class Shift(Decays):
    """conv4: the last three tokens."""

    NAMES = ("s1", "s2", "s3")

    def parts(self, _sizes):
        return {"tokens": (1,)}

    def transition(self, _gates, _scalars, shape, _probe):
        return {"tokens": torch.full((shape[0], 1), float(shape[1]))}

    def through(self, transition, states, _axes, back):
        """A token that was the j-th from the end is the (j + tokens)-th."""
        n = transition["tokens"][..., None]
        zero = torch.zeros_like(states["s1"])
        found = {}
        for j, name in enumerate(self.NAMES):
            found[name] = zero
            for i, other in enumerate(self.NAMES):
                found[name] = torch.where((i - j if back else j - i) == n, states[other], found[name])
        return found


def _hgrn2(x, s):
    return logsigmoid(x["gx"]) if not s["gamma"] else (s["gamma"] + (1 - s["gamma"]) * x["gx"].sigmoid()).log()


_forget = Decays(head=lambda x, s: logsigmoid(x["f"]))
_delta = Delta()
_RULES = {
    "linear": Decays(), "nla": Normalised(),
    "retention": Decays(head=lambda x, s: x["log_lambda"]), "lightning": Decays(head=lambda x, s: x["log_lambda"]),
    "gated-retention": Decays(head=lambda x, s: logsigmoid(x["f"]) / s["tau"]),
    "simple-gla": Decays(head=lambda x, s: x["a"]),
    "mamba2": Decays(head=lambda x, s: -x["A_log"].exp() * softplus(x["dt_raw"] + x["dt_bias"])),
    "mlstm-sig": _forget, "mlstm-sig-norm": Normalised(**_forget.logs), "mlstm-exp": Maximum(head=_forget.logs["head"]),
    "gla": Decays(dqk=lambda x, s: logsigmoid(x["gx"]) / s["tau"]),
    "vector-decay": Decays(dqk=lambda x, s: x["g"]), "hgrn2": Decays(dqk=_hgrn2),
    "rwkv6": Decays(dqk=lambda x, s: -x["w"].exp()),
    "dfw": Decays(dqk=lambda x, s: x["gl"], dhv=lambda x, s: x["gr"]),
    "delta-net": _delta, "gated-delta": _delta, "kda": _delta, "delta-net-unit": _delta, "gated-delta-unit": _delta,
    "gated-delta-gate": _delta, "kda-gate": _delta, "kda-safe": _delta,
    "conv4": Shift(), "conv4-bias": Shift(),
}
_HINTS = {"nla-full": "its tokens see all others: sum C, n, sv and c over the ranks, and read them by an operator of yours",
          None: "it carries nothing from token to token: call it on each rank's tokens (of rotary and lrpe with the rank's "
                "rows of the tables)"}


def rule(variant):
    """How a variant's states go through tokens."""
    if variant not in _RULES:
        raise wrong("variant", f"one with states that tokens carry on: {', '.join(_RULES)}", repr(variant),
                    _HINTS.get(variant, _HINTS[None]))
    return _RULES[variant]


def compose(how, records, axes, back=False):
    """The states behind pieces: of the first its own, through the others. Records are (states, transition), float32."""
    (states, _), *others = records
    states = {name: x.double() for name, x in states.items()}
    for own, transition in others:
        transition = {name: x.double() for name, x in transition.items()}
        carried = how.through(transition, states, axes, back)
        states = how.joined(carried, {name: x.double() for name, x in own.items()})
    return {name: x.float() for name, x in states.items()}
