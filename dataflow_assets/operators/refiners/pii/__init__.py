"""Finds personal data in texts and puts something else in its place."""
