"""Benchmarks: one command each, peers side by side in the same go, results as JSON."""
