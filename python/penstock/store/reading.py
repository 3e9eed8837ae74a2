"""Reads what is stored. Whatever stands in a file, the answer is its content or one sentence that names the file."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from penstock.mistake import MistakeError
from penstock.store.names import StoreError

MOST_BYTES = 2**31  # largest file that is read


def dump(value: Any) -> str:
    """Returns the JSON text of a value as all files have it: indented, and the same bytes for equal values."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def rows(value: Any) -> str:
    """Returns the JSON text of a result that is kept beside its page: each entry of a list is one line."""
    return _rows(value, "") + "\n"


_ONE_LINE = 200  # characters of an object that is not opened


def _rows(value: Any, indent: str) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(text) <= _ONE_LINE or not isinstance(value, dict | list):
        return text
    if isinstance(value, list):
        lines, (left, right) = [json.dumps(one, ensure_ascii=False) for one in value], "[]"
    else:
        lines = [f"{json.dumps(key, ensure_ascii=False)}: {_rows(one, indent + ' ')}" for key, one in value.items()]
        left, right = "{}"
    return f"{left}\n" + ",\n".join(f"{indent} {line}" for line in lines) + f"\n{indent}{right}"


def sha256(data: bytes) -> str:
    """Returns the SHA-256 hash of bytes as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def read(path: Path) -> bytes:
    """Returns the bytes of a file; raises `StoreError` if it cannot be read."""
    try:
        if path.exists() and not path.is_file():
            raise StoreError(f"{path}: cannot be read: it is not a file")
        if path.stat().st_size > MOST_BYTES:
            raise StoreError(f"{path}: has {path.stat().st_size} bytes; at most {MOST_BYTES} are read")
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from None


def read_text(path: Path) -> str:
    """Returns the text of a file; raises `StoreError` if it cannot be read or is not UTF-8."""
    return text(read(path), path)


def text(data: bytes, path: Path) -> str:
    """Returns bytes as a text; `path` is for the message."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise StoreError(f"{path}: not a text: byte {error.start} is not UTF-8") from None


def read_json(path: Path) -> Any:
    """Reads a JSON file; raises `StoreError` if it cannot."""
    return parsed(read(path), path)


def parsed(data: bytes, path: Path) -> Any:
    """Returns the value of a JSON text whose numbers are finite; `path` is for the message."""
    try:
        given = text(data, path)
        value = json.loads(given, parse_constant=_constant, parse_float=_finite)
        if "\\u" in given:
            json.dumps(value, ensure_ascii=False).encode()  # half of a pair of surrogates is no text
        return value
    except ValueError as error:
        raise (error if isinstance(error, StoreError) else StoreError(f"{path}: not JSON: {error}")) from None
    except RecursionError:
        raise StoreError(f"{path}: not JSON of ours: it is nested too deeply") from None


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is too large")
    return value


def newer(path: Path, found: Any, known: int) -> None:
    """Raises `StoreError` if a file has a format that this version does not know, or none."""
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise StoreError(f"{path}: has no format that is a number from 1 to {known}")
    if found > known:
        raise StoreError(f"{path}: has format {found} of a newer version; this one reads formats up to {known}")


@contextlib.contextmanager
def as_written(path: Path) -> Iterator[None]:
    """Turns errors about values that no command writes into one sentence about the file."""
    try:
        yield
    except MistakeError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
        RecursionError,
        AssertionError,
    ) as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise StoreError(f"{path}: holds other values than a command writes ({what.splitlines()[0]})") from error
