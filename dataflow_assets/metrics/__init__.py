"""The numbers of a run for Prometheus: a text file and an endpoint."""
