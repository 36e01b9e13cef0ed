"""Operators that drop what the data set has already."""
