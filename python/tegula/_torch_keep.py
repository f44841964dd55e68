"""What a forward leaves for its backward beside its outputs, where that makes both faster: states, and what the delta rule
writes. It is decided where the gradient is known to be needed, by the cost model, for the sizes of the call; of a graph that
leaves sizes open for those that it was traced with, so that forward and backward have the same.
"""

from ._arrays import View, dense
from ._c import Error
from ._device import device

GAIN = 0.95  # of the time without: the model is no better, and what is kept takes memory

_MOST = 4096


def choose(op, tensors, options, keep_states):
    """Chunk, segment and the bits of what is kept, for a forward `op`; None: nothing. `keep_states`: where the model says that
    it is faster (None), wherever there are two such programs (True), never (False)."""
    if op is None or keep_states is False or options.step:
        return None
    telling = [tensors[i] for i in op.telling]
    key = (options, keep_states, telling[0].get_device(),
           *[None if t is None else (t.shape, t.dtype) for t in telling])
    try:
        found = op.choices.get(key, False)
    except TypeError:  # sizes that are open
        return _choose(op, tensors, options, keep_states)
    if found is False:
        if len(op.choices) == _MOST:
            op.choices.clear()
        found = op.choices[key] = _choose(op, tensors, options, keep_states)
    return found


def _choose(op, tensors, options, keep_states):
    views = {name: _view(t) for name, t in zip(op.names, tensors) if t is not None}
    where = _device(tensors)
    if where is None or any(view is None for view in views.values()):
        return None
    found = op.operator.keeping(where, views, options.how)
    if found is None or (keep_states is None and found.seconds >= GAIN * found.seconds_without):
        return None
    return found.chunk, found.segment, op.bits(found.names)


def _device(tensors):
    """None: there is no such GPU here, where somebody traces for one."""
    try:
        return device(next((t.device.index for t in tensors if t is not None and t.is_cuda), "emu"))
    except Error:
        return None


def _view(t):
    """The shape and type of a tensor, which may be one that is only traced; None where nobody knows its sizes yet."""
    shape = tuple(map(_hint, t.shape))
    return None if None in shape else View(0, shape, dense(shape), str(t.dtype)[6:], None, None)


def _hint(n):
    """A size; of one that a graph leaves open that with which it is traced."""
    return n if isinstance(n, int) else getattr(n.node, "hint", None)
