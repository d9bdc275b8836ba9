"""The device's trusted kernel: finite tables of probabilities, their privacy loss, and exact draws from them."""
