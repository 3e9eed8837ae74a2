"""Where PINK's promise ends: document 000, sections 3 and 4."""
