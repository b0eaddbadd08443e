"""gplearn, an optional peer in comparisons. It ships no types."""
