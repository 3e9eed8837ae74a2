"""What PINK costs with 10 to 100,000 flows: document 000, Corollaries 2 and 3."""
