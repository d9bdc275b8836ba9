"""From SQL or Python to one frozen, typed Query."""
