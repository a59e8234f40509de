"""Written links become directed edges: what a text wrote, which file and passage it means, and how much a link weighs."""
