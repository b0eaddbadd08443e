"""Asking, and what the answers tell: oracles, trials, which variables matter. Knows no search."""
