"""FQ-PIE beside PIE and FQ-CoDel: document 004, section 5.2.3."""
