"""Checks of a step: what may be declared, how they are judged, what they stop, what Dagster is told."""
