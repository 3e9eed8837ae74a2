"""What several published experiments share."""
