"""What two layers cost: document 002, sections 4.2.4.2 and 4.2.5.3."""
