"""PIE with a target that moves: document 004, chapter 4."""
