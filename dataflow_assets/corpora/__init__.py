"""A store of corpora in SQL: conversations as a row a turn, read back as they came, changed by key alone."""
