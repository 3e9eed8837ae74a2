"""PINK on a DSL link: document 000, section 6.1, Table 2, and document 002, section 3.3."""
