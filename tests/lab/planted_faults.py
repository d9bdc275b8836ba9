"""Plant a fault in the code that runs: one text of a source file is replaced, and the functions get the new code."""

import importlib
import inspect
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"


@contextmanager
def plant(file: str, text: str, becomes: str) -> Iterator[None]:
    """Run with `text` in a source file replaced, as if the file had been written so.

    Functions and methods get the code of the altered file in place, so that every module that imported them has it.
    Constants of the module are replaced in the module alone.
    """
    path = SOURCES / file
    source = path.read_text()
    assert source.count(text) == 1, f"{source.count(text)} times in {file}: {text}"
    module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    altered = types.ModuleType(module.__name__)
    altered.__dict__.update({name: value for name, value in vars(module).items() if name.startswith("__")})
    exec(compile(source.replace(text, becomes), str(path), "exec"), altered.__dict__)
    undo = []
    try:
        for name, value in vars(altered).items():
            for old, new in pair_functions(getattr(module, name, None), value, module.__name__):
                if old.__code__ != new.__code__:
                    undo.append((old, old.__code__, old.__defaults__))
                    old.__code__, old.__defaults__ = new.__code__, new.__defaults__
        constants = {
            name: value
            for name, value in vars(altered).items()
            if is_plain(value) and not name.startswith("__") and getattr(module, name, value) != value
        }  # fmt: skip
        kept = {name: getattr(module, name) for name in constants}
        for name, value in constants.items():
            setattr(module, name, value)
        assert undo or constants, "nothing was altered"
        clear_caches()
        yield
    finally:
        for function, code, defaults in undo:
            function.__code__, function.__defaults__ = code, defaults
        for name, value in kept.items() if undo or constants else ():
            setattr(module, name, value)
        clear_caches()


def pair_functions(old: object, new: object, module: str) -> Iterator[tuple[types.FunctionType, types.FunctionType]]:
    """The functions of the module, and the methods of its classes, beside those of the altered file."""
    if inspect.isclass(old) and inspect.isclass(new) and old.__module__ == module:
        for name, part in vars(new).items():
            if name in vars(old):
                yield from pair_functions(vars(old)[name], part, module)
        return
    for unwrap in ("__wrapped__", "fget", "func", "__func__"):
        if hasattr(old, unwrap) and hasattr(new, unwrap) and not isinstance(old, types.FunctionType):
            yield from pair_functions(getattr(old, unwrap), getattr(new, unwrap), module)
            return
    if isinstance(old, types.FunctionType) and isinstance(new, types.FunctionType) and old.__module__ == module:
        if hasattr(old, "__wrapped__") and hasattr(new, "__wrapped__"):
            yield from pair_functions(old.__wrapped__, new.__wrapped__, module)
        if old.__closure__ is None and new.__closure__ is None:
            yield old, new


def is_plain(value: object) -> bool:
    """Is it a number, a text, or a tuple or dict of them?"""
    parts = value if isinstance(value, tuple) else value.values() if isinstance(value, dict) else (value,)
    return all(isinstance(part, str | int | float) for part in parts)


def clear_caches() -> None:
    """Forget what functions of any module remember: it may have been computed by other code than the one that runs."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "sfumato":
            for value in list(vars(module).values()):
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()
