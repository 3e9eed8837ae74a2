"""The ledger: what the documents claim, each as a check that a run decides."""

from penstock.claims.ledger import Claim, Entry, Finding, Verdict, counted, judge, ledger

__all__ = ["Claim", "Entry", "Finding", "Verdict", "counted", "judge", "ledger"]
