"""The embedded engine: DuckDB over a pinned snapshot."""
