"""Files by URL, against real servers."""
