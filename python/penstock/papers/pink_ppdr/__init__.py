"""PINK in an emergency network: document 002, section 3.2."""
