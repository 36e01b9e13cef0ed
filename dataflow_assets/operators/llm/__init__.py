"""Operators that ask a model about each row."""
