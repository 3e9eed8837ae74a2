"""What may vary in the scenarios that the adversary tries: a file of defaults, ranges, and parts that may be there.

A trial is a set of settings: the keys that are not at their defaults, by name. "topology.rate" is a key of the
scenario; "udp" is a part, such as a group of neighbours, and "udp.rate" a key of it; "buffer" is the size of the queue
in products of rate and round trip time.
"""

from __future__ import annotations

import math
import pickle
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from penstock.adversary.subject import Subject
from penstock.experiments.paths import put
from penstock.mistake import MistakeError
from penstock.scenario import Scenario, to_toml
from penstock.suggest import did_you_mean
from penstock.units import base, base_unit, quantity, with_unit

BUFFER = "buffer"
LISTS = ("flows", "changes")  # where a part may add its table
KINDS = ("discipline", "control")
_KEYS = ("about", "kind", "scenario", "vary", "parts")
_PART_KEYS = ("name", "about", "to", "table", "vary", "hostile")
_RANGE_KEYS = ("from", "to", "scale", "default")
_LEAST_BUFFER = 3028  # bytes: a queue has room for two packets
_WIDE = 4  # parameters of an algorithm are varied by this factor in both directions

Settings = dict[str, Any]


class SpaceError(MistakeError):
    """A file of a space is wrong."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, in the unit of their kind."""

    low: float
    high: float
    unit: str = ""
    log: bool = False
    whole: bool = False

    def at(self, place: float, digits: int = 2) -> Any:
        """Returns the value at a place from 0 to 1, with few digits."""
        grown = self.low * (self.high / self.low) ** place if self.log else self.low + (self.high - self.low) * place
        number = min(max(grown, self.low), self.high)
        return round(number) if self.whole else with_unit(number, self.unit, digits)

    def place(self, value: Any) -> float:
        """Returns the place of a value; the reverse of `at`."""
        number = base(value)
        if number is None:
            return 0.5
        number = min(max(number, self.low), self.high)
        if self.log:
            return math.log(number / self.low) / math.log(self.high / self.low)
        return (number - self.low) / (self.high - self.low)

    @property
    def told(self) -> str:
        """The range in words."""
        return f"{self.at(0)} to {self.at(1)}"


@dataclass(frozen=True)
class Choices:
    """A list of values."""

    values: tuple[Any, ...]

    def at(self, place: float, digits: int = 2) -> Any:  # noqa: ARG002 - as that of a range
        """Returns the value at a place from 0 to 1."""
        return self.values[min(int(place * len(self.values)), len(self.values) - 1)]

    def place(self, value: Any) -> float:
        """Returns the middle of a value's part of 0 to 1."""
        return (self.values.index(value) + 0.5) / len(self.values) if value in self.values else 0.5

    @property
    def told(self) -> str:
        """The values in words."""
        return ", ".join(str(value) for value in self.values)


Values = Range | Choices
_PRESENT = Choices((True,))


@dataclass(frozen=True)
class Gene:
    """One key that may differ from its default."""

    key: str
    values: Values
    default: Any = None
    part: str = ""  # the part to which it belongs

    @property
    def is_part(self) -> bool:
        """True for the presence of a part itself."""
        return self.key == self.part


@dataclass(frozen=True)
class Part:
    """A table that may be added to the scenario: neighbours, or a change of the link."""

    name: str
    to: str
    table: Mapping[str, Any]
    about: str = ""
    hostile: bool = False  # it means harm: such parts are tried only where that is asked for


@dataclass(frozen=True)
class Space:
    """All scenarios that may be tried."""

    kind: str
    scenario: Mapping[str, Any]
    genes: tuple[Gene, ...]
    parts: tuple[Part, ...]
    about: str = ""
    subject: Subject | None = None
    _packed: bytes = field(default=b"", repr=False)

    def of(self, subject: Subject, *, parameters: bool = False, hostile: bool = True) -> Space:
        """Returns the space with an algorithm in its place.

        Its parameters vary as well with `parameters`; parts that mean harm are left out without `hostile`.
        """
        if subject.judged_as != self.kind:
            raise SpaceError(f"{subject} is a {subject.kind}, and the space is one of a {self.kind}")
        placed = subject.placed(self.scenario)
        kept = [part for part in self.parts if hostile or not part.hostile]
        names = {part.name for part in kept}
        parts = tuple(replace(part, table=subject.placed(part.table)) for part in kept)
        genes = tuple(gene for gene in self.genes if not gene.part or gene.part in names)
        genes = (*genes, *(_parameter_genes(subject) if parameters else ()))
        return replace(self, scenario=placed, parts=parts, genes=genes, subject=subject, _packed=pickle.dumps(placed))

    def gene(self, key: str) -> Gene:
        """Returns the gene of a key."""
        found = next((gene for gene in self.genes if gene.key == key), None)
        if found is None:
            known = [gene.key for gene in self.genes]
            raise SpaceError(f"the space has no key {key!r}; {did_you_mean(key, known)}it has {', '.join(known)}")
        return found

    def roles(self, settings: Settings) -> list[str]:
        """Returns the name of each entry of [[flows]]: "subject" for those of the scenario itself, else the part's."""
        own = ["subject"] * len(self.scenario.get("flows", []))
        return own + [part.name for part in self.parts if part.to == "flows" and settings.get(part.name)]

    def tree(self, settings: Settings) -> dict[str, Any]:
        """Returns the tables of the scenario with these settings."""
        found: dict[str, Any] = pickle.loads(self._packed)
        tables: dict[str, dict[str, Any]] = {}
        for part in self.parts:
            if settings.get(part.name):
                tables[part.name] = {**part.table}
                found.setdefault(part.to, []).append(tables[part.name])
        for key, value in settings.items():
            name, _, rest = key.partition(".")
            if name in tables:
                if rest:
                    put(tables[name], rest, value)
            elif key != BUFFER and name not in self._part_names:
                put(found, self._path(key), value)
        self._limit(found, settings)
        return found

    @property
    def _part_names(self) -> set[str]:
        return {part.name for part in self.parts}

    def _path(self, key: str) -> str:
        name, _, rest = key.partition(".")
        if name == "parameter":
            return f"{'aqm' if self.kind == 'discipline' else 'flows.0.cc'}.{rest}"
        return key

    def _limit(self, tree: dict[str, Any], settings: Settings) -> None:
        gene = next((gene for gene in self.genes if gene.key == BUFFER), None)
        if gene is None:
            return
        topology = tree["topology"]
        size = settings.get(BUFFER, gene.default) * product_bytes(topology)
        topology["limit"] = with_unit(max(size, _LEAST_BUFFER), "B", 3)

    def text(self, settings: Settings, name: str = "trial", seed: int | None = None) -> str:
        """Returns the text of the scenario with these settings."""
        tree = self.tree(settings)
        head = {"name": name} | ({} if seed is None else {"seed": seed})
        return to_toml({**head, **tree})

    def scenario_of(self, settings: Settings, name: str = "trial", seed: int | None = None) -> Scenario:
        """Returns the scenario with these settings."""
        file, classes = (self.subject.file, self.subject.classes) if self.subject else ("", {})
        return Scenario(self.text(settings, name, seed), file or name, classes)

    def normal(self, settings: Settings) -> Settings:
        """Returns settings without keys of absent parts and without values that are defaults, in the genes' order."""
        kept: Settings = {}
        for gene in self.genes:
            if gene.key not in settings or (gene.part and not gene.is_part and not settings.get(gene.part)):
                continue
            value = settings[gene.key]
            if gene.is_part or value != gene.default:
                kept[gene.key] = value
        return kept


def base_rtt_s(topology: Mapping[str, Any], access_delay: Any = None) -> float:
    """Returns the round trip time of a dumbbell without queues."""
    access = (base(topology.get("access_delay", "0s")) or 0.0) * 2
    own = access if access_delay is None else access / 2 + (base(access_delay) or 0.0)
    return 2 * ((base(topology["delay"]) or 0.0) + own)


def product_bytes(topology: Mapping[str, Any]) -> float:
    """Returns the product of rate and round trip time, in bytes."""
    return (base(topology["rate"]) or 0.0) * base_rtt_s(topology) / 8


def _parameter_genes(subject: Subject) -> list[Gene]:
    found = []
    for name, default in subject.parameters.items():
        values: Values | None = None
        number = quantity(default)
        if isinstance(default, bool):
            values = Choices((not default,))
        elif number is not None and number[0] > 0 and number[1] in ("", "s", "ms", "us", "bit/s", "B", "kB"):
            size, unit = base(default) or 0.0, base_unit(default)
            whole = isinstance(default, int)
            low = max(1.0, size / _WIDE) if whole else size / _WIDE
            values = Range(low, size * _WIDE, unit, True, whole)
        if values is not None:
            found.append(Gene(f"parameter.{name}", values, default))
    return found


def standard(kind: str) -> Space:
    """Returns the space of this release for a kind of algorithm."""
    text = resources.files("penstock.adversary").joinpath("spaces", f"{kind}.toml").read_text(encoding="utf-8")
    return read(text, f"spaces/{kind}.toml")


def load(path: Path) -> Space:
    """Reads the file of a space."""
    return read(Scenario.load(path).text, str(path))


def read(text: str, file: str) -> Space:
    """Reads a space; raises `SpaceError` if it is wrong."""
    try:
        tables = tomllib.loads(text)
        return _space(tables)
    except tomllib.TOMLDecodeError as error:
        raise SpaceError(f"{file}: {error}") from None
    except MistakeError as error:
        raise SpaceError(f"{file}: {error}") from None


def _space(tables: Mapping[str, Any]) -> Space:
    _known(tables, _KEYS, "a space")
    scenario, kind = tables.get("scenario"), tables.get("kind", "discipline")
    if kind not in KINDS:
        raise SpaceError(f"kind = {kind!r}: {did_you_mean(str(kind), KINDS)}it is {' or '.join(KINDS)}")
    if not isinstance(scenario, dict) or not isinstance(scenario.get("flows"), list):
        raise SpaceError("[scenario] with at least one entry of [[scenario.flows]] is missing: it holds the defaults")
    if scenario.get("topology", {}).get("kind", "dumbbell") != "dumbbell":
        raise SpaceError("[scenario.topology] must be a dumbbell, whose one link is searched")
    parts = tuple(_part(table) for table in tables.get("parts", []))
    genes = [_gene(key, given, _at(scenario, key)) for key, given in tables.get("vary", {}).items()]
    for part, table in zip(parts, tables.get("parts", []), strict=True):
        genes.append(Gene(part.name, _PRESENT, None, part.name))
        for key, given in table.get("vary", {}).items():
            gene = _gene(key, given, _at(part.table, key))
            genes.append(replace(gene, key=f"{part.name}.{key}", part=part.name))
    twice = {gene.key for gene in genes if [one.key for one in genes].count(gene.key) > 1}
    if twice:
        raise SpaceError(f"{', '.join(sorted(twice))}: there twice; give each part a name of its own")
    return Space(kind, scenario, tuple(genes), parts, tables.get("about", ""))


def _part(table: Mapping[str, Any]) -> Part:
    _known(table, _PART_KEYS, "a part")
    name, to = table.get("name", ""), table.get("to", "flows")
    if not isinstance(name, str) or not name or "." in name:
        raise SpaceError(f"a part has name = {name!r}; write a word without a dot")
    if to not in LISTS:
        raise SpaceError(f'the part {name}: to = {to!r}: {did_you_mean(str(to), LISTS)}it is "flows" or "changes"')
    if not isinstance(table.get("table"), dict):
        raise SpaceError(f"the part {name} has no table: it holds what is added to [[{to}]]")
    return Part(name, to, table["table"], table.get("about", ""), bool(table.get("hostile", False)))


def _gene(key: str, given: Any, default: Any) -> Gene:
    if isinstance(given, Sequence) and not isinstance(given, str):
        if not given:
            raise SpaceError(f"{key}: the list is empty; give at least one value")
        return Gene(key, Choices(tuple(given)), default)
    if not isinstance(given, Mapping):
        raise SpaceError(f'{key} = {given!r}: write a list, or a range such as {{ from = 1, to = 64, scale = "log" }}')
    _known(given, _RANGE_KEYS, f"the range of {key}")
    if not {"from", "to"} <= given.keys():
        raise SpaceError(f"the range of {key} needs from and to")
    if key == BUFFER and "default" not in given:
        raise SpaceError("the range of buffer needs a default, in products of rate and round trip time")
    return Gene(key, _range(key, given), given.get("default", default))


def _range(key: str, given: Mapping[str, Any]) -> Range:
    low, high = base(given["from"]), base(given["to"])
    scale = given.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise SpaceError(f"{key}: scale = {scale!r}: {did_you_mean(str(scale), ('linear', 'log'))}it is linear or log")
    if low is None or high is None or base_unit(given["from"]) != base_unit(given["to"]):
        raise SpaceError(f"{key}: {given['from']!r} to {given['to']!r} is no range of numbers of one kind")
    if low >= high or (scale == "log" and low <= 0):
        raise SpaceError(f"{key}: from must be smaller than to, and above zero with a logarithmic scale")
    whole = isinstance(given["from"], int) and isinstance(given["to"], int)
    return Range(low, high, base_unit(given["from"]), scale == "log", whole)


def _known(table: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    for key in table:
        if key not in known:
            raise SpaceError(f"{what} has no {key!r}; {did_you_mean(key, known)}it has {', '.join(known)}")


def _at(tree: Any, path: str) -> Any:
    """Returns the value at a path; `None` if there is none."""
    for key in path.split("."):
        if isinstance(tree, list):
            tree = tree[int(key)] if key.isdigit() and int(key) < len(tree) else None
        else:
            tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree
