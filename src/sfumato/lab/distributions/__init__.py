"""Exact probabilities of the mechanisms, for teaching: what each output's chance is, given the value."""
