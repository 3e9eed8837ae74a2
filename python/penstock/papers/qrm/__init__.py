"""QRM against nodes that do not obey: document 002, section 3.1.5."""
