"""Databases that this package keeps things in or reads: engines, transactions and upserts."""
