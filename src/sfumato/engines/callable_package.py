"""A package that is called like a function: `sf.engines.postgres(url)` is the package engines/postgres, called.

Python sets a package's attribute to its subpackage when that is imported. A function of the same name would be lost.
"""

from types import ModuleType


class CallablePackage(ModuleType):
    """A call of the package is a call of its function `choose`."""

    def __call__(self, *arguments: object, **options: object) -> object:
        return self.choose(*arguments, **options)
