"""Cooperation, PINK and QRM side by side: document 002, chapters 2 and 3."""
