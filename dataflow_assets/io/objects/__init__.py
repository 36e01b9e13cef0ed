"""A root on an object store: the objects are the truth, a folder on this disk is a copy of them."""
