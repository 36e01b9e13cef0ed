"""Operators on rows and columns, whatever they hold."""
