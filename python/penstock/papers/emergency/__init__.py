"""The emergency network of document 002, section 2.1."""
