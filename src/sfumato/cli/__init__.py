"""The command line. It holds no privacy logic."""
