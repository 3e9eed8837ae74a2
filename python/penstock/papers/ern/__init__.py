"""RED that is told rates: document 003, section IV."""
