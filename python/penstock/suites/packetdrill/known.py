"""Scripts that the simulated TCP is known not to pass, each with its sentence."""

from __future__ import annotations

__all__ = ["KNOWN"]

# By the name of the script without its directory and `.pkt`. A sentence begins with what it is: a choice, open, or
# the player.
KNOWN: dict[str, str] = {
    "cwnd-moderation-ecn-enter-cwr-no-moderation-700": (
        "choice: an ACK that moves on and finds no loss lets one segment more go (RFC 9937 section 6, as Linux 7.2); "
        "the script has the older rule"
    ),
    "fr-4pkt-fack-last-mss": (
        "open: the script waits 40 ms for what RFC 8985 section 6.2 gives 25 ms, a quarter of the round trip time; "
        "sack-shift-sacked-7-5-6-8-9-fack waits 27 ms in the same state"
    ),
    "invalid_ack": (
        "choice: an ACK of what was not sent is answered (RFC 5961 section 5.2); the copy of the script in Linux 7.2 "
        "wants the answer as well"
    ),
    "tcp_accecn_close_local_close_then_remote_fin": (
        "choice: Linux leaves ACE out of the ACKs of TIME-WAIT; RFC 9768 section 3.2.2 has it on every segment"
    ),
    "tcp_accecn_delivered_falseoverflow_detect": ("player: the script changes a setting while the connection is open"),
    "tcp_accecn_sack_space_grab": (
        "choice: a simulated segment has two SACK blocks at most beside an option of three counters"
    ),
    "tcp_accecn_synack_ce_updates_delivered_ce": (
        "choice: tcp_ecn_fallback=0 is not there: who finds its ECN field mangled sends no ECT "
        "(RFC 9768 section 3.2.2.3)"
    ),
}
