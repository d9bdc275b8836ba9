"""Packages that the core does without: imported where they are wanted, and named where they are missing."""

from importlib import import_module
from typing import Any

from sfumato.errors import MissingExtra


def imported(package: str) -> Any:  # noqa: ANN401 - a module
    """The package, or a refusal that says how to install it; extras are named as their packages are."""
    try:
        return import_module(package)
    except ModuleNotFoundError:
        message, hint = f"This needs {package}, which is not installed.", f"Run: pip install 'sfumato[{package}]'"
        raise MissingExtra("missing-extra", message, hint) from None
