"""FQ-Minstrel PIE beside FQ-PIE: document 004, section 5.3."""
