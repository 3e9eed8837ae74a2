"""The page about starts on satellite links: its limit by hand, and its times as they are today."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from penstock import marked

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    path = ROOT / "tools" / "measure" / "satellite-start"
    loader = importlib.machinery.SourceFileLoader("satellite_start", str(path))
    spec = importlib.util.spec_from_loader("satellite_start", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules["satellite_start"] = module
    loader.exec_module(module)
    return module


def rows(name: str) -> dict[str, list[str]]:
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in marked.between(tool_page(), name)]
    return {row[0]: row[1:] for row in found}


def tool_page() -> Path:
    return ROOT / "docs" / "results" / "satellite-start.md"


def test_the_limit_is_two_round_trips_and_the_frames(tool: ModuleType) -> None:
    slow, fast = tool.LINKS
    # 1 MB are 690.6 segments of 1448 B, in frames of 1500 B 8.287 Mbit: 2.072 s at 4 Mbit/s, 0.166 s at 50 Mbit/s.
    assert slow.limit_s(1) == pytest.approx(1.4 + 2.0718, abs=1e-4)
    assert fast.limit_s(1) == pytest.approx(1.2 + 0.1657, abs=1e-4)
    assert (slow.holds, fast.holds) == (350_000, 3_750_000)


def test_both_tables_have_every_sender_and_nobody_beats_the_limit(tool: ModuleType) -> None:
    times, costs = rows("times"), rows("costs")
    assert [*times][3:] == [*costs][2:] == [*tool.SENDERS]
    limits = [float(cell) for cell in times["physical limit"]]
    for name in tool.SENDERS:
        assert all(float(cell) >= limit for cell, limit in zip(times[name], limits, strict=True)), name


def test_what_the_page_tells_is_what_is_found(tool: ModuleType) -> None:
    """All but the transfers of 100 MB, which take longest."""
    times, costs = rows("times"), rows("costs")
    columns = [(link, size) for link in tool.LINKS for size in tool.SIZES]
    buffers = [(link, buffers) for link in tool.LINKS for buffers in tool.BUFFERS]
    for name, sender in tool.SENDERS.items():
        for (link, size), told in zip(columns, times[name], strict=True):
            assert size == 100 or tool.time(link, sender, size) == told, f"{name}, {link.name}, {size} MB"
        for (link, times_held), told in zip(buffers, costs[name], strict=True):
            assert tool.cost(link, sender, times_held) == told, f"{name}, {link.name}, a buffer of {times_held}"
