"""Randomisers for people's answers, the choice between them, and estimates from randomised reports."""
