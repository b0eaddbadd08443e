"""A laboratory on disk: one folder is the experiment, people measure, and the search says what to measure next."""
