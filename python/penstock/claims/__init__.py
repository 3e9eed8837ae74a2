"""The ledger: all claims of the documents, each as a check of the results of runs."""

from penstock.claims.ledger import Because, Cause, Claim, Entry, Finding, Kind, Verdict, causes, counted, judge, ledger

__all__ = [
    "Because",
    "Cause",
    "Claim",
    "Entry",
    "Finding",
    "Kind",
    "Verdict",
    "causes",
    "counted",
    "judge",
    "ledger",
]
