"""What a scheduler guarantees to a flow of growing weight: document 002, section 4.3.3.2, Table 4.4."""
