"""Sources whose rows are made: by a function of the user's, or rows with nothing but a number."""
