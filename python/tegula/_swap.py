"""What tegula.fla.install() and its kin put in the place of another library's functions.

Every name in a loaded module that is bound to one of them is bound to ours: it stays in a graph of torch.compile. Where FLA
itself asks a registry for who shall do a call, a backend is registered too, for whoever has kept the function elsewhere;
where mlstm_kernels has a dictionary of its functions, ours are in it.
"""

import functools
import importlib
import inspect
import sys
import threading
import warnings

from ._c import Error, wrong

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


def _theirs(places):
    """The functions of the names that this version of the other library has; places: name to module."""
    found = {}
    for name, place in places.items():
        module = _import(place)
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
            package = theirs.__module__.partition(".")[0]
            warnings.warn(f"{package}'s own {ours.__name__} runs: {error}", RuntimeWarning, stacklevel=2)
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


class Swap:
    """The functions of another library, by name, with ours in their place while it is installed."""

    def __init__(self, package, places, functions):
        self.package, self.places, self.functions = package, places, functions
        self.bound = []  # module or dictionary, name, what it was bound to

    def install(self, strict):
        self.uninstall()
        theirs = _theirs(self.places)
        if not theirs:
            raise wrong(self.package, "the package, installed", f"none of {', '.join(sorted(set(self.places.values())))}")
        self.bind(theirs, strict)
        return sorted(theirs)

    def bind(self, theirs, strict):
        """By the identity of what a name is bound to."""
        instead = {id(function): _instead(self.functions[name], function, strict) for name, function in theirs.items()}
        for module_name, module in list(sys.modules.items()):
            names = getattr(module, "__dict__", None)
            for name, value in list(names.items()) if isinstance(names, dict) else ():
                if id(value) in instead:
                    self._put(names, name, instead[id(value)])
                elif type(value) is dict and module_name.startswith(f"{self.package}."):
                    self._bind_values(value, instead)

    def _bind_values(self, registry, instead):
        for name, value in list(registry.items()):
            if id(value) in instead:
                self._put(registry, name, instead[id(value)])

    def _put(self, names, name, function):
        self.bound.append((names, name, names[name]))
        names[name] = function

    def uninstall(self):
        while self.bound:
            names, name, function = self.bound.pop()
            names[name] = function


class FlaSwap(Swap):
    """Its registries too."""

    def __init__(self, functions):
        super().__init__("fla", {name: f"fla.ops.{_operation(name)}" for name in functions}, functions)

    def bind(self, theirs, strict):
        super().bind(theirs, strict)
        base, registries = _registries(theirs)
        for registry in registries:
            registry.register(_backend(base, self.functions, strict))
            _asked.append(registry)

    def uninstall(self):
        super().uninstall()
        while _asked:
            _asked.pop()._backends.pop(_TYPE, None)
