"""Tables as Parquet and CSV.

A thread of pyarrow's that holds a Python object and lets go of it while the interpreter ends aborts the process. So
Parquet is read by the calling thread, and CSV only from files that pyarrow opens itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def from_parquet(data: bytes) -> pa.Table:
    """Returns the table of a Parquet file from its bytes. Raises what pyarrow raises about bytes that are none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(pa.BufferReader(data), pre_buffer=False).read(use_threads=False)


def from_csv(file: Path, types: Mapping[str, Any] | None = None) -> pa.Table:
    """Returns the table of a CSV file; `types` are those of columns by name, and the values tell the others."""
    from pyarrow import csv

    return csv.read_csv(  # noqa: TID251 (the one place)
        str(file), convert_options=csv.ConvertOptions(column_types=dict(types or {}))
    )
