"""Slow, obviously right NumPy twins of fast code; they import none of it."""
