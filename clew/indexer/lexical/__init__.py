"""Lexical search: analysis, language detection, segments of postings, and their assembly into one index."""
