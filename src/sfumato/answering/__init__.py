"""Answering: from a question to a charged, released and stored answer."""
