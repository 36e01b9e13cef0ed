"""Tests of file names, formats, atomic writes, commit records and the IO manager."""
