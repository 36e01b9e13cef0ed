"""Hypothesis without a deadline: the machine is shared."""

from hypothesis import settings

settings.register_profile("shared_machine", deadline=None, database=None)
settings.load_profile("shared_machine")
