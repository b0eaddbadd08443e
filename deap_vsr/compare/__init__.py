"""The comparison harness: suites -> runs -> store -> tables, pictures, report."""
