from clinic import clinic, pristine

__all__ = ["clinic", "pristine"]
