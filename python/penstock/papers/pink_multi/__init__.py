"""PINK with a second bottleneck: document 000, sections 3.1 and 6.4."""
