"""The command `dataflow-assets`: what it takes, what it prints, what it ends with."""
