"""Plugins: who is told of what a run does, and those that come with the package."""
