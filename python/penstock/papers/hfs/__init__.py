"""Throughput and guarantees of HFS over its buffer: document 002, sections 4.1.3.2 and 4.2.5."""
