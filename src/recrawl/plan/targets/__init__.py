"""A schedule as the file that a crawler takes, and the command that applies it."""
