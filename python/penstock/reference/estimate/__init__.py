"""Laws that estimate the rates of a link."""
