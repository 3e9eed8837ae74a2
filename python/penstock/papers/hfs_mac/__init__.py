"""Which scheduler beside the radio: document 002, section 4.2.4.2."""
