"""HTTP: many analysts ask one owner's datasets. No privacy logic: every question goes through a Curator."""
