"""PINK's parameter c: document 000, section 6.5."""
