"""The life of single rows: where they came from, and what each step made of them."""
