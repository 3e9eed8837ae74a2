"""The properties that no algorithm may lose: a sentence says when each is broken, and a number says how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.adversary import sentence
from penstock.adversary.sentence import Sentence
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean


@dataclass(frozen=True)
class Goal:
    """What the search looks for: a sentence with a name."""

    name: str
    sentence: Sentence
    about: str = ""

    @cached_property
    def shown(self) -> str:
        """The quantity by which a finding is told: the first that the sentence names."""
        return self.sentence.names[0]


@dataclass(frozen=True)
class Property:
    """A standing property."""

    name: str
    text: str
    about: str
    kinds: tuple[str, ...] = ("discipline", "control")
    of: tuple[str, ...] = ()  # the algorithms that it is about; empty: all of these kinds


STANDING: tuple[Property, ...] = (
    Property(
        "starvation", "share_lowest < 0.1", "a flow that always has data gets less than a tenth of its fair share"
    ),
    Property("stall", "stalled_s >= 5", "a flow that always has data gets nothing for 5 s"),
    Property("unfair", "jain_long < 0.5", "Jain's index of the flows that always have data is below 0.5"),
    Property(
        "delay",
        "link.queue_delay_p90_ms > 5 * max(base_rtt_ms, 20)",
        "a tenth of the packets wait for longer than five round trips (of at least 20 ms)",
    ),
    Property("drops", "needless_drops > 0.2", "a fifth of the packets is dropped beyond what must be"),
    Property(
        "unused",
        "use_late < 0.5 and link.lost == 0",
        "half of the link is unused, although flows have data and no packet is lost on the wire",
    ),
    Property("oscillation", "oscillation > 0.4", "the use of the link goes up and down by 40 % of its mean"),
    Property(
        "recovery",
        "recovery_s > 5 and link.lost == 0",
        "after a change of its rate or delay the link is not full for 5 s",
    ),
    Property(
        "bully",
        "others_share_lowest < 0.1",
        "a flow of another control gets less than a tenth of its fair share",
        ("control",),
    ),
    Property(
        "impossible", "impossible > 0 or failed > 0", "the results contradict each other, or the run ends with an error"
    ),
)


def of_kind(kind: str, name: str = "") -> list[Property]:
    """Returns the properties of a kind of algorithm."""
    return [one for one in STANDING if kind in one.kinds and (not one.of or name in one.of)]


def goals(wanted: Sequence[str], kind: str, parts: tuple[str, ...]) -> list[Goal]:
    """Returns what is to be looked for: names of properties or sentences; without any, all properties of the kind."""
    standing = {one.name: one for one in of_kind(kind)}
    if not wanted:
        return [_goal(one, parts) for one in standing.values()]
    found = []
    for text in wanted:
        word = text.strip()
        if word in standing:
            found.append(_goal(standing[word], parts))
        elif word.isidentifier():
            raise MistakeError(
                f"there is no property {word!r}; {did_you_mean(word, standing)}there are {', '.join(standing)}; "
                f"{sentence.GRAMMAR}"
            )
        else:
            found.append(Goal(word, sentence.read(word, parts)))
    return found


def _goal(one: Property, parts: tuple[str, ...]) -> Goal:
    return Goal(one.name, sentence.read(one.text, parts), one.about)
