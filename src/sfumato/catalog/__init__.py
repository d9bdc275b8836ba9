"""What the owner declares: tables, columns, privacy units and budgets, and the file catalog.toml."""
