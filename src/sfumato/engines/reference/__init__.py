"""The reference engine: plain Python that the other engines must equal, bit for bit."""
