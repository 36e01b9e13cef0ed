"""Runs of the real command that are killed, torn, stopped or starved, and what is there afterwards."""
