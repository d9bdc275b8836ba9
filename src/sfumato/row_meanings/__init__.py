"""The meaning of every row-level function, in plain Python. Other engines must equal it, bit for bit."""
