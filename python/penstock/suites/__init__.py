"""Suites: how the IETF wants algorithms judged, each as one command.

`model` says what a case, a criterion and a finding are, `running` runs the cases on the processes of sweeps, `kept` is
what is kept of a run, `judging` makes the findings, and `results` stores them. A suite is a file with its cases and its
criteria: `rfc7928` for AQMs (its cases are in `aqm_cases`), `rfc9743` (`control_cases`) and `tcp_eval` for congestion
controls, `bbr_draft` for forms of BBR, whose cases drive a connection step by step (`watched`). `networks` has the
networks they share.
"""
