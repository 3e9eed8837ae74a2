"""PINK under a flood of SYNs: document 000, section 4."""
