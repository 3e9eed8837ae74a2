"""PINK with round trips of 100 to 250 ms: document 000, section 6.2."""
