"""Scripts of packetdrill as judges of the simulated TCP.

packetdrill says what Linux' TCP does, by segments with times, system calls and facts that must be true. The scripts
are those of a
user's checkout: google/packetdrill (`gtests/net/tcp`) and the selftests of the Linux kernel
(`tools/testing/selftests/net/packetdrill`). They are under the GPL, are read and never copied.

`script.py` and `values.py` read the language, `rule.py` says which scripts are applicable, `host.py` what their
commands mean,
`sockets.py` and `connection.py` are the interface between calls and an endpoint, and `player.py` plays and compares.
"""

from penstock.suites.packetdrill.judge import Judged, judge, sentence, to_json

__all__ = ["Judged", "judge", "sentence", "to_json"]
