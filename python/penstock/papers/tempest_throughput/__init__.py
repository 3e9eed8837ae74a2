"""What a scheduler makes of a lossy channel: document 002, section 4.3.3.3, Table 4.6."""
