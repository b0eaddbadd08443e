"""Metrics and the judge of recovery. It knows the hidden formula: never part of a search."""
