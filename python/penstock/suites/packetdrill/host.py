"""What a script's commands make of the host: settings of Linux, and the options of the simulated TCP that they mean.

The commands are not run. `defaults.sh` of both suites is taken by its meaning: the settings of a current kernel,
`cubic` and a receive buffer of up to 15 MiB. Its `tcp_slow_start_after_idle=0` means nothing here: after an idle time
the window is the initial one.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Host"]

_TIMESTAMPS = 12  # bytes of the option, which segments have room for
_DEFAULTS = {
    "tcp_rmem": f"4096 540000 {15 << 20}",
    "tcp_timestamps": "1",
    "tcp_sack": "1",
    "tcp_congestion_control": "cubic",
    "tcp_slow_start_after_idle": "0",
    "tcp_ecn": "0",
    "tcp_ecn_option": "2",
    "tcp_early_retrans": "3",
    "tcp_recovery": "1",
}
# Settings of which the simulated TCP has one form alone, or which shape what leaves together and not what leaves.
_WITHOUT_EFFECT = {
    "tcp_min_tso_segs",
    "tcp_tso_win_divisor",
    "tcp_pacing_ss_ratio",
    "tcp_pacing_ca_ratio",
    "tcp_invalid_ratelimit",
    "tcp_ecn_option_beacon",
    "tcp_ecn_fallback",
}
_MEANT = {*_DEFAULTS, *_WITHOUT_EFFECT}
# Commands that prepare files, undo settings or forbid the interface to cut packets.
_IGNORED = re.compile(
    r"^(/tmp/sysctl_restore|/bin/rm |rm |/bin/dd |dd |ethtool -K tun0 "
    r"|tc qdisc replace dev tun0 root (fq|pfifo)$|sleep )"
)
_CONTROLS: dict[str, dict[str, Any]] = {
    "cubic": {"name": "cubic-linux", "hystart": True},
    "reno": {"name": "newreno", "compat": "linux"},
    "bbr": {"name": "bbr", "compat": "linux"},
    "dctcp": {"name": "dctcp"},
}
# Whether a side asks for ECN and for its accurate form, by `tcp_ecn`: (client, server).
_ECN = {
    0: ((False, False), (False, False)),
    1: ((True, False), (True, False)),
    2: ((False, False), (True, False)),
    3: ((True, True), (True, True)),
    4: ((True, False), (True, True)),
    5: ((False, False), (True, True)),
}


@dataclass
class Host:
    """The settings of a host. `foreign` are commands and settings that mean nothing to the simulated TCP; `paced`
    tells that the
    discipline fq paces all connections."""

    settings: dict[str, str] = field(default_factory=lambda: dict(_DEFAULTS))
    foreign: list[str] = field(default_factory=list)
    paced: bool = False

    def take(self, text: str) -> None:
        """Takes the lines of a command."""
        for line in re.sub(r"\\\s*\n", " ", text).splitlines():
            line = re.sub(r"(^|\s)#.*", "", line).strip()
            if line:
                self._line(line)

    def _line(self, line: str) -> None:
        hystart = re.match(r"^echo (\d) > /sys/module/tcp_cubic/parameters/hystart_detect$", line)
        if hystart:
            self.settings["hystart_detect"] = hystart.group(1)
            return
        self.paced = self.paced or line.endswith("root fq")
        if _IGNORED.match(line):
            return
        words = shlex.split(line)
        if words[0].endswith("/defaults.sh"):
            self.settings = dict(_DEFAULTS)
        elif words[0] == "sysctl" or words[0].endswith("/set_sysctls.py"):
            for word in words[1:]:
                if not word.startswith("-"):
                    self._setting(word, line)
        else:
            self.foreign.append(line)

    def _setting(self, word: str, line: str) -> None:
        key, _, value = word.partition("=")
        name = re.split(r"[./]", key)[-1]
        if name in _MEANT:
            self.settings[name] = value
        else:
            self.foreign.append(name if value else line)

    def options(self, client: bool, mss: int) -> dict[str, Any]:
        """Returns `[tcp]` of one side, which announces segments of at most `mss` bytes."""
        setting = self.settings
        stamped = setting["tcp_timestamps"] != "0"
        control = _CONTROLS[setting["tcp_congestion_control"]]
        ecn, accurate = _ECN[int(setting["tcp_ecn"])][0 if client else 1]
        sack = setting["tcp_sack"] != "0"
        if setting.get("hystart_detect") == "0":
            control = {**control, "hystart": False}
        return {
            "cc": control,
            "mss": f"{mss - _TIMESTAMPS * stamped}B",
            "timestamps": stamped,
            "sack": sack,
            "rack": sack and setting["tcp_recovery"] != "0",
            "without_sack": "linux",
            "acknowledging": "linux",
            "ecn": ecn,
            "accurate_ecn": accurate,
            "accurate_ecn_option": setting["tcp_ecn_option"] != "0",
            "receive_buffer": f"{setting['tcp_rmem'].split()[2]}B",
        }
