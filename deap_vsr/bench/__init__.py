"""Measurements behind ``vsr bench``: ratios taken in one run, never timed tests."""
