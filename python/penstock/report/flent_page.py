"""The page of a test of Flent: numbers of each discipline, and pings and goodput over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock import worlds
from penstock.report import kit
from penstock.report.kit.model import Axis, Cell, Chart, Line, Section, Table

Found = Mapping[str, Any]
_TITLES = {
    "download_mbps": ("Download", "Mbit/s"),
    "upload_mbps": ("Upload", "Mbit/s"),
    "download_jain": ("Jain's index of downloads", ""),
    "upload_jain": ("Jain's index of uploads", ""),
    "ping_ms_p50": ("Ping, median", "ms"),
    "ping_ms_p90": ("Ping, 90th percentile", "ms"),
    "ping_ms_p99": ("Ping, 99th percentile", "ms"),
    "ping_loss": ("Pings lost", ""),
    "call_ms_p50": ("Call, one way, median", "ms"),
    "call_ms_p90": ("Call, 90th percentile", "ms"),
    "call_ms_p99": ("Call, 99th percentile", "ms"),
    "call_lost": ("Packets of the call lost", ""),
    "drops": ("Drops", ""),
}
_SUMS = {"TCP download": "Download", "TCP upload": "Upload"}
_PLACES = 200  # points of a distribution


def page(found: Found) -> str:
    """Returns the page of what a test found."""
    names = list(found["disciplines"])
    words = " ".join(f"'{name}'" if " " in name else name for name in names)
    charts = [chart for chart in (*_over_time(found, names), _distribution(found, names)) if chart.lines]
    return kit.page(
        f"{found['test']}: {found['title']}",
        f"{found['described']}. The link has the discipline in both directions.",
        [Section("Numbers", [_table(found, names)], _READ), Section("Over time", charts)],
        command=f"penstock suite {found['test']} {words}{_world(found)}",
        versions=found["versions"],
    )


def _world(found: Found) -> str:
    on = found["setup"].get("on", worlds.SIM)  # what has none was simulated
    return "" if on == worlds.SIM else f" --on {on}"


_READ = (
    "Of the time in which connections send. Rates are sums of the connections of a direction. The files .flent.gz "
    "beside this page have all series; Flent's own command plots them."
)


def _table(found: Found, names: Sequence[str]) -> Table:
    keys = [key for key in _TITLES if any(key in found["disciplines"][name] for name in names)]
    columns = ["Discipline", *(f"{_TITLES[key][0]} ({_TITLES[key][1]})".removesuffix(" ()") for key in keys)]
    return Table("", columns, [[name, *(_cell(found["disciplines"][name].get(key)) for key in keys)] for name in names])


def _cell(value: float | None) -> Cell:
    if value is None:
        return Cell("–")
    return Cell(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}", value)


def _over_time(found: Found, names: Sequence[str]) -> list[Chart]:
    """Returns the mean ping, the delay of the call, and the sum of each direction."""
    time = Axis("time", "s", low=0.0)
    wanted = [("Mean ping", "ms", _ping), ("Delay of the call", "ms", lambda series: series.get("VoIP::delay"))]
    wanted += [(title, "Mbit/s", _summed(way)) for way, title in _SUMS.items()]
    charts = []
    for title, unit, of in wanted:
        values = [of(found["series"][name]) for name in names]
        lines = [
            Line(name, _known(ys), place)
            for place, (name, ys) in enumerate(zip(names, values, strict=True))
            if ys is not None
        ]
        charts.append(Chart(title, "", time, Axis(title.lower(), unit, zero=True), lines, found["xs"], "time"))
    return charts


def _known(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]


def _ping(series: Mapping[str, Sequence[float | None]]) -> Sequence[float | None] | None:
    named = [name for name in series if name.startswith("Ping")]
    return series.get("Ping (ms) avg") or (series[named[0]] if named else None)


def _summed(way: str) -> Any:
    def of(series: Mapping[str, Sequence[float | None]]) -> Sequence[float | None] | None:
        return series.get(f"{way} sum") or series.get(way)

    return of


def _distribution(found: Found, names: Sequence[str]) -> Chart:
    """Returns the distribution of all pings."""
    lines = []
    for place, name in enumerate(names):
        pings = [
            value
            for series, values in found["series"][name].items()
            if series.startswith("Ping") and not series.endswith("avg")
            for value in values
            if value is not None
        ]
        if pings:
            pings.sort()
            shares = [index / _PLACES for index in range(_PLACES + 1)]
            xs = [pings[min(len(pings) - 1, int(share * len(pings)))] for share in shares]
            lines.append(Line(name, shares, place, xs))
    axes = Axis("ping", "ms", log=True), Axis("share of pings", zero=True)
    return Chart("Distribution of pings", "The share of pings that took at most so long.", *axes, lines)
