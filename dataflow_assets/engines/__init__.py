"""Engines: who runs an operator on a table. One interface, several ways."""
