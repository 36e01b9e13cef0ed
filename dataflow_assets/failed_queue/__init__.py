"""The rows that failed: listed, tried again in their place, edited and put back."""
