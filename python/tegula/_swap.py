"""What tegula.fla.install() puts in the place of flash-linear-attention's functions.

Every name in a loaded module that is bound to one of them is bound to ours: it stays in a graph of torch.compile. Where FLA
itself asks a registry for who shall do a call, a backend is registered too, for whoever has kept the function elsewhere.
"""

import functools
import importlib
import inspect
import sys
import threading
import warnings

from ._c import Error, wrong

_bound = []  # module, name, what it was bound to
_asked = []  # registries with our backend
_TYPE = "tegula"
PREFIXES = ("fused_recurrent_", "fused_chunk_", "parallel_", "chunk_")


def _import(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name and not name.startswith(f"{error.name}."):
            raise
        return None


def _theirs(functions):
    """FLA's functions of the names that this version of it has."""
    if _import("fla.ops") is None:
        raise wrong("fla", "flash-linear-attention, installed", "no package fla.ops")
    found = {}
    for name in functions:
        module = _import(f"fla.ops.{_operation(name)}")
        if hasattr(module, name):
            found[name] = getattr(module, name)
    return found


def _operation(name):
    prefix = next(prefix for prefix in PREFIXES if name.startswith(prefix))
    return name[len(prefix) :]


def _instead(ours, theirs, strict):
    """Ours; what it refuses goes to theirs, and says so."""
    if strict:
        return ours

    @functools.wraps(ours)
    def function(*args, **kwargs):
        try:
            return ours(*args, **kwargs)
        except Error as error:
            warnings.warn(f"flash-linear-attention's own {ours.__name__} runs: {error}", RuntimeWarning, stacklevel=2)
            return theirs(*args, **kwargs)

    return function


def _backend(base, functions, strict):
    """Whether a call can be done is known when it is done: what verify accepts is what the function hands out."""
    kept = threading.local()

    class Backend(base):
        backend_type, package_name, priority = _TYPE, "tegula", 1

        def verify(self, function_name, *args, **kwargs):
            if function_name not in functions:
                return False, f"tegula has no {function_name}"
            try:
                kept.result = functions[function_name](*args, **kwargs)
            except Error as error:
                if strict:
                    raise
                return False, str(error)
            return True, None

        def __getattr__(self, name):
            if name not in functions:
                raise AttributeError(name)
            return lambda *_args, **_kwargs: kept.__dict__.pop("result")

    return Backend()


def _registries(theirs):
    """FLA's, of operations and of functions, and the base of their backends: from version 0.6 on, and before."""
    module = _import("fla.backends")
    if module is not None:
        of_functions = (module._function_registries.get(inspect.unwrap(function)) for function in theirs.values())
        of_operations = (module._operation_registries.get(_operation(name)) for name in theirs)
        return module.BaseBackend, [r for r in (*of_functions, *of_operations) if r is not None]
    module = _import("fla.ops.backends")
    if module is None:
        return None, []
    for name in theirs:
        module.BackendRegistry.ensure_initialized(_operation(name))
    found = (module.BackendRegistry._registries.get(_operation(name)) for name in theirs)
    return module.BaseBackend, [r for r in found if r is not None]


def _bind(instead):
    """`instead`: by the identity of what a name is bound to."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        for name, value in list(names.items()) if isinstance(names, dict) else ():
            if id(value) in instead:
                setattr(module, name, instead[id(value)])
                _bound.append((module, name, value))


def install(functions, strict):
    uninstall()
    theirs = _theirs(functions)
    _bind({id(function): _instead(functions[name], function, strict) for name, function in theirs.items()})
    base, registries = _registries(theirs)
    for registry in registries:
        registry.register(_backend(base, functions, strict))
        _asked.append(registry)
    return sorted(theirs)


def uninstall():
    while _bound:
        setattr(*_bound.pop())
    while _asked:
        _asked.pop()._backends.pop(_TYPE, None)
