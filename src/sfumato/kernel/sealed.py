"""Objects that must exist once: a copy of them would pay for, or answer, a second time."""

from typing import NoReturn, TypeVar

from sfumato.errors import KernelFault

Sealed = TypeVar("Sealed")
_CHANGES = ("__setattr__", "__delattr__", "__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__")


def seal(kind: type[Sealed]) -> type[Sealed]:
    """A class whose objects cannot be changed, copied or written out, and which has no subclasses.

    Claim: K-28. Python's public ways of setting, copying and pickling an object of this class raise KernelFault.
    Requires: code that keeps to Python's public ways: `object.__setattr__` gets around it.
    Relies on: Python's data model.
    Checked by: tests/kernel/test_release.py::test_a_reservation_is_not_multiplied
    """

    def refuse(*_: object, **__: object) -> NoReturn:
        raise KernelFault(f"An object of {kind.__name__} cannot be changed, copied or written out.")

    for name in _CHANGES:
        setattr(kind, name, refuse)
    kind.__init_subclass__ = classmethod(refuse)  # type: ignore[assignment]
    return kind
