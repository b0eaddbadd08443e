"""Equation files: read, checked, written, found, generated."""
