"""HFS between hosts: document 002, sections 4.1.3.2, 4.2.3 and 4.2.5."""
