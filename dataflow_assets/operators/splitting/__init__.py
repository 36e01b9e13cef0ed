"""Operators that make several rows out of one."""
