"""Operators that bring rows into the form that a training program expects, and back."""
