"""Operators that replace a text by a better one."""
