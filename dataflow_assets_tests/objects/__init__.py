"""A root on an object store: a real S3 server in a process of its own, real commands, kills and faults."""
