"""DyBRA with channels that change: document 002, section 2.3.3."""
