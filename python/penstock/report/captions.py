"""The title and the caption of each figure of a run."""

from __future__ import annotations

RUN = {
    "network": (
        "Network",
        "Nodes, and which flows begin (before the arrow) and end at them. A dashed link changes while the run goes on; "
        "its numbers are those of the start.",
    ),
    "link_changes": (
        "Links that change",
        "What became of rate, delay (one way) and loss, as far as they change. One line stands for both directions if "
        "they are the same. Of more than 10,000 changes of a link only every second is kept, or fourth, and so on.",
    ),
    "goodput": ("Goodput of the flows", "Payload that reaches a receiver in each second."),
    "queue": ("Bottleneck", "Throughput with headers, and how long packets waited, as means over each second."),
}
