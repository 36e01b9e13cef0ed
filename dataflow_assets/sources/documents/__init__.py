"""Documents of a source: PDF, HTML, DOCX, Markdown and plain text to rows."""
