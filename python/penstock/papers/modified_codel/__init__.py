"""CoDel with a modified control law: document 004, chapter 3."""
