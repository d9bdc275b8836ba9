"""Mechanisms that a program calls on its own numbers, without a curator: arguments, margins and texts.

`mechanisms/` has the code that their privacy proofs rest on; the kernel draws the noise.
"""
