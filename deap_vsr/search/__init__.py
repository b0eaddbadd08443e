"""Vertical search: the round, its expansions, what a search keeps and how it ends. Knows no regressor."""
