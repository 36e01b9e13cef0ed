"""What the command does, as jobs of Dagster that can be launched from the UI."""
