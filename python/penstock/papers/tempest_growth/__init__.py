"""The cost of a scheduler over the number of flows: document 002, section 4.3.3.1, Table 4.3."""
