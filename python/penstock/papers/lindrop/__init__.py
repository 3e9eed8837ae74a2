"""LINDROP on long paths: document 001, sections 3 and 4."""
