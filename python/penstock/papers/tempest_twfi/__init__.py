"""What a scheduler of two layers guarantees: document 002, section 4.3.3.2, Table 4.5."""
