"""Runs that go on after something changed: settings, input, code, or nothing."""
