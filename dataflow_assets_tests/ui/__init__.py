"""The Dagster UI in a real browser, and what it is asked for by GraphQL."""
