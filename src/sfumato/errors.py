"""The whole taxonomy of errors. A message says what is wrong and what to do; it never carries a value from the data."""


class SfumatoError(Exception):
    """Base of every error that Sfumato raises on purpose."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())
        self.code = code
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuilt from its parts, not from its arguments: errors cross process pools."""
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[SfumatoError], arguments: tuple[object, ...], state: dict[str, object]) -> SfumatoError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


class InvalidParameter(SfumatoError, ValueError):
    """A number or name given to the program breaks a public rule."""

    def __init__(self, parameter: str, rule: str, kind: str, hint: str = "") -> None:
        super().__init__("invalid-parameter", f"{parameter} {rule}; got {kind}.", hint)
        self.parameter = parameter


class KernelFault(SfumatoError):
    """The kernel found itself in a state that its proofs exclude; nothing was released."""

    def __init__(self, message: str) -> None:
        super().__init__("kernel-fault", message, "Please report this: it is a defect, and no answer left.")
