"""Files that are elsewhere: on a web server, in an object store, on whatever fsspec reaches."""
