"""BoundedPlan -> SQL: the tree of one plan, and where the dialects of engines differ."""
