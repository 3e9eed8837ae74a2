"""The ledger: all claims of the documents, each as a check of the results of runs."""

from penstock.claims.ledger import Claim, Entry, Finding, Verdict, counted, judge, ledger

__all__ = ["Claim", "Entry", "Finding", "Verdict", "counted", "judge", "ledger"]
