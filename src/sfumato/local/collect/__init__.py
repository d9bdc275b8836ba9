"""The collector's side: received reports, tallies, results, and the bound that a shuffler adds."""
