"""Operators that run a local model, and those that choose rows by the vectors that it gives."""
