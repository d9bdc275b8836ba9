"""Engines run a BoundedPlan over a pinned snapshot and return integers."""
