"""C²ML on a satellite link: document 002, section 2.2.4."""
