"""Versions of a data set: the lock of a run, what differs between two, DVC stages, Croissant metadata."""
