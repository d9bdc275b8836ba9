"""Packages that the core does without: imported where they are wanted, and named where they are missing."""

from importlib import import_module
from typing import Any

from sfumato.errors import MissingExtra


def imported(package: str, extra: str | None = None) -> Any:  # noqa: ANN401 - a module
    """The package, or a refusal that says how to install it. An extra is named as its package, unless `extra` is."""
    try:
        return import_module(package)
    except ModuleNotFoundError:
        message = f"This needs {package}, which is not installed."
        hint = f"Run: pip install 'sfumato[{extra or package}]'"
        raise MissingExtra("missing-extra", message, hint) from None
