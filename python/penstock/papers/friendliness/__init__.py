"""Who shares with whom."""
