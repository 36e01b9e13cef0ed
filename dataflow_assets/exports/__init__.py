"""Folders that other tools train from: Hugging Face, WebDataset, LLaMA-Factory."""
