"""Asking models: calls and answers, servings, the client with its limits, the ledger, the budget."""
