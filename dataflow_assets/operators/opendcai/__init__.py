"""Operators of the open-dataflow package, run as ours."""
