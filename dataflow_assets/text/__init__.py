"""A text and what is computed of it once: language, lines, sentences, words."""
