"""What the data of a step is like: counts of all rows, and measures of a sample of them, for each batch.

A profile is made while the batch is in memory, kept beside it, and merged over batches when asked for.
"""

from dataflow_assets.profiles.of_steps import profile_of, step_summary
from dataflow_assets.profiles.profile import Profile

__all__ = ["Profile", "profile_of", "step_summary"]
