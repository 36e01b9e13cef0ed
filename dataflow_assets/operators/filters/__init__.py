"""Operators that keep or reject rows by rules on their text."""
