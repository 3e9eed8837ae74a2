"""Tables are read without what could abort the interpreter when it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from penstock import columns

# Once pyarrow's pool of threads runs, its threads live until the process ends.
SCRIPT = """\
import os, sys
import pyarrow as pa, pyarrow.parquet as pq
from penstock import columns
data = open(sys.argv[1], "rb").read()
columns.from_parquet(data)
before = len(os.listdir("/proc/self/task"))
columns.from_parquet(data)
assert len(os.listdir("/proc/self/task")) == before, "reading made threads"
pq.read_table(pa.BufferReader(data))
assert len(os.listdir("/proc/self/task")) > before, "this test cannot see threads"
os._exit(0)  # an ordinary end may abort in the threads that the line above began
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_no_thread_of_pyarrow_reads_a_table(tmp_path: Path) -> None:
    table = pa.table({f"column {n}": list(range(10_000)) for n in range(10)})
    file = tmp_path / "table.parquet"
    pa.parquet.write_table(table, file)
    command = [sys.executable, "-c", SCRIPT, str(file)]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr


def test_a_table_comes_back_with_its_types_and_its_notes(tmp_path: Path) -> None:
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    table = pa.table({"n": pa.array([1, 2, None], pa.int32()), "word": words}).replace_schema_metadata({"k": "v"})
    out = pa.BufferOutputStream()
    pa.parquet.write_table(table, out)
    again = columns.from_parquet(bytes(out.getvalue()))
    assert again.equals(table, check_metadata=True)
    with pytest.raises(pa.ArrowInvalid):
        columns.from_parquet(b"PAR1 and no more")
    file = tmp_path / "table.csv"
    file.write_text("n,word\n1,7\n2,8\n")
    assert columns.from_csv(file, {"word": pa.string()}).to_pydict() == {"n": [1, 2], "word": ["7", "8"]}
