"""What a scheduler costs: document 002, section 4.3.3.1, Tables 4.1 and 4.2."""
