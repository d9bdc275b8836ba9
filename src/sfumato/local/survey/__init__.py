"""Signed surveys, and the device that answers them."""
