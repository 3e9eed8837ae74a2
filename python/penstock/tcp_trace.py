"""Tables of a traced run (windows of TCP connections and queues over time), and their summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

FLOWS, QUEUES = "tcp_trace", "queue_trace"
_NONE = 2**64 - 1  # stands for a missing value in columns of the compiled extension


def arrow(columns: dict[str, npt.NDArray[Any]], states: list[str]) -> pa.Table:
    """Returns the columns as a table, with names for states, and null for what a connection does not have.

    It may have no threshold and no pacing rate, and has no round trip before the first sample.
    """
    import pyarrow as pa

    out = {}
    for name, values in columns.items():
        if name == "state":
            out[name] = pa.DictionaryArray.from_arrays(pa.array(values.astype("int32")), pa.array(states))
        elif name in ("ssthresh_bytes", "pacing_bps"):
            out[name] = pa.array(values, mask=values == _NONE)
        elif name == "srtt_ms":
            out[name] = pa.array(values, mask=values == 0)
        else:
            out[name] = pa.array(values)
    return pa.table(out)


def of_flow(table: pa.Table, flow: int) -> pa.Table:
    """Returns the rows of one flow."""
    import pyarrow.compute as pc

    return table.filter(pc.equal(table["flow"], flow))


def flow_summary(table: pa.Table, flow: int, cc: str) -> dict[str, Any]:
    """Returns the summary of one connection, over the samples in which it was open."""
    import pyarrow.compute as pc

    rows = of_flow(table, flow)
    states = rows["state"].to_pylist()
    rows = rows.filter(pc.not_equal(rows["state"].cast("string"), "closed"))
    told = ("cwnd_bytes", "ssthresh_bytes", "srtt_ms", "pacing_bps", "in_flight_bytes")
    counted = ("retransmitted_segments", "timeouts")
    return {
        "flow": flow,
        "cc": cc,
        "samples": len(states),
        "states": {name: states.count(name) / len(states) for name in sorted(set(states))},
        **{name: _numbers(rows[name].drop_null().to_numpy()) for name in told},
        **{name: int(pc.max(rows[name]).as_py() or 0) for name in counted},
    }


def queue_summary(table: pa.Table, queue: int, name: str) -> dict[str, Any]:
    """Returns the summary of one queue."""
    import pyarrow.compute as pc

    rows = table.filter(pc.equal(table["queue"], queue))
    return {
        "queue": name,
        "queue_bytes": _numbers(rows["queue_bytes"].to_numpy()),
        "dropped_packets": int(pc.max(rows["dropped_packets"]).as_py() or 0),
        "marked_packets": int(pc.max(rows["marked_packets"]).as_py() or 0),
    }


def _numbers(values: npt.NDArray[np.generic]) -> dict[str, float] | None:
    if not len(values):
        return None
    least, most, mean, last = values.min(), values.max(), values.mean(), values[-1]
    return {"min": float(least), "mean": float(mean), "max": float(most), "last": float(last)}
