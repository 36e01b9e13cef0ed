"""A step's rows for others: one file, one that grows, or a folder that a tool trains from."""
