"""Sources in databases: the rows of a query, and a data set of a store of corpora."""
