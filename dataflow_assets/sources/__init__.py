"""Step 0: finding the files of a source, reading their records, writing the first batches."""
