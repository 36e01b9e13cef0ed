"""Data sets of Hugging Face's `datasets` and of ModelScope as sources."""
