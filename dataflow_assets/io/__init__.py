"""How rows get to disk and back: file names, formats, atomic writes, commit records, the IO manager."""
