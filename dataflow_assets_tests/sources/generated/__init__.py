"""Sources whose rows are made."""
