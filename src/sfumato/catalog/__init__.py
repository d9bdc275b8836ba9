"""What the owner declares: tables, columns, units and budgets, and the file that keeps them."""
