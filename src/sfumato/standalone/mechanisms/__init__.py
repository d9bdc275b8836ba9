"""The stand-alone mechanisms, for the numbers of a program that calls them without a curator.

Part of the trusted perimeter of these mechanisms: another proof than the curator's.
"""
