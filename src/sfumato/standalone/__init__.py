"""Mechanisms that a program calls on its own numbers, without a curator: arguments, margins and texts.

The kernel draws the noise and holds the proofs.
"""
