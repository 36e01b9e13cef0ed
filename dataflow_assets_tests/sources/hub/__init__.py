"""Data sets of Hugging Face and ModelScope, offline."""
