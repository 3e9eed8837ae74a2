"""PINK on a satellite link: document 000, section 6.3, Table 3."""
