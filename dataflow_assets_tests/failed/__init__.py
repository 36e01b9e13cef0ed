"""The failed-sample queue: rows that fail, are tried again, are edited and put back."""
