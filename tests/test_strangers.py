"""What strangers send: archives, links and directories are refused with a sentence, and leave nothing."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import signal
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import SCENARIO, Command
from penstock import engine, link, rundir, testbed
from penstock.exports import pack
from penstock.mistake import MistakeError
from penstock.scenario import Scenario


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The archive of a short run."""
    place = tmp_path_factory.mktemp("run") / "small"
    rundir.write(engine.simulate(Scenario(SCENARIO.replace('"5s"', '"2s"'), "small.toml")), place)
    return pack.archive(place)


@pytest.fixture(autouse=True)
def leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test that leaves a file where folders of archives are."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    monkeypatch.setenv("TMPDIR", str(place))
    yield
    assert list(place.iterdir()) == []


def packed(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for name, data in files.items():
            made.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def with_sums(files: dict[str, bytes]) -> dict[str, bytes]:
    """Files below one folder with right hashes, so that only what the test is about is wrong."""
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name.partition('/')[2]}\n" for name, data in files.items())
    return {**files, "a/SHA256SUMS": sums.encode()}


def inside(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def damaged(method: int) -> bytes:
    """An archive whose compressed bytes are wrong in the middle."""
    whole = bytearray(packed({"a/run/manifest.json": bytes(range(256)) * 40}, method))
    at = whole.index(b"manifest.json") + len("manifest.json") + 6
    whole[at : at + 30] = bytes(value ^ 0xFF for value in whole[at : at + 30])
    return bytes(whole)


def twice() -> bytes:
    with pytest.warns(UserWarning):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as made:
            for text in ("1", "2"):
                made.writestr("a/run/manifest.json", text)
    return out.getvalue()


def liar() -> bytes:
    """A file of 2 MB of which the directory of the archive says that it has 10 bytes."""
    whole = bytearray(packed(with_sums({"a/run/x": bytes(2_000_000)})))
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = whole.index(mark) + offset
        whole[at : at + 4] = (10).to_bytes(4, "little")
    return bytes(whole)


ARCHIVES: dict[str, tuple[Callable[[], bytes], str]] = {
    "deflate is damaged": (lambda: damaged(zipfile.ZIP_DEFLATED), "no archive"),
    "LZMA": (lambda: damaged(zipfile.ZIP_LZMA), "another way than by store or deflate"),
    "bzip2": (lambda: damaged(zipfile.ZIP_BZIP2), "another way than by store or deflate"),
    "no zip": (lambda: b"not an archive", "no archive"),
    "empty": (lambda: b"", "no archive"),
    "the name .": (lambda: packed({".": b"x"}), "the name '.'"),
    "a name alone": (lambda: packed({"manifest.json": b"x"}), "the name 'manifest.json'"),
    "a name that leads out": (lambda: packed(with_sums({"a/../../x": b"x"})), "the name 'a/../../x'"),
    "an absolute name": (lambda: packed({"/etc/x": b"x"}), "the name '/etc/x'"),
    "a name with a control character": (lambda: packed({"a/run/\x1b[2J": b"x"}), "the name"),
    "a long name": (lambda: packed({"a/" + "x" * 300: b"x"}), "the name"),
    "2,000 folders": (lambda: packed({f"a/{n}/": b"" for n in range(2000)}), "2000 entries; at most 1000"),
    "a deep folder": (lambda: packed({"a/" * 200 + "x": b""}), "the name"),
    "a bomb of less than 1 MB": (lambda: packed(with_sums({"a/run/x": bytes(540_000_000)})), "at most 536870912"),
    "a smaller bomb": (lambda: packed(with_sums({"a/run/x": bytes(100_000_000)})), "at most 50 times its size"),
    "a size that is a lie": (liar, "no archive"),
    "a file and a folder": (lambda: packed(with_sums({"a/run": b"x", "a/run/y": b"x"})), "is a file and a folder"),
    "a name twice": (twice, "is there twice"),
    "two folders": (lambda: packed({"a/x": b"", "b/x": b""}), "no common folder"),
    "no hashes": (lambda: packed({"a/run/manifest.json": b"{}"}), "another hash"),
    "no run": (lambda: packed(with_sums({"a/x": b"1"})), "not a run directory"),
    "a manifest of something else": (lambda: packed(with_sums({"a/run/manifest.json": b"[1]"})), "no JSON object"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_that_is_none_is_refused_with_a_sentence(name: str, tmp_path: Path) -> None:
    make, told = ARCHIVES[name]
    file = tmp_path / "sent.zip"
    file.write_bytes(make())
    assert len(file.read_bytes()) < 1_000_000
    begin = time.process_time()
    with pytest.raises(MistakeError) as refused, pack.unpacked(file) as place:
        rundir.rerun(place, confined=True)
    assert told in str(refused.value), refused.value
    assert time.process_time() - begin < 1


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9, 0.99])
def test_an_archive_that_was_cut_is_refused(good: bytes, cut: float, tmp_path: Path) -> None:
    file = tmp_path / "sent.zip"
    file.write_bytes(good[: int(len(good) * cut)])
    with pytest.raises(MistakeError, match="no archive"), pack.unpacked(file):
        pass


def test_an_archive_that_somebody_packed_again_is_read(good: bytes, tmp_path: Path) -> None:
    """The bound of the ratio leaves real runs alone: this one is smaller by less than the bound allows."""
    file = tmp_path / "again.zip"
    file.write_bytes(packed(inside(good)))
    assert len(file.read_bytes()) < len(good)
    with pack.unpacked(file) as place:
        assert rundir.rerun(place, confined=True).same


MANIFESTS = {
    "options": ([1], "options"),
    "files": ({"../../etc/passwd": "0" * 64}, "not in the directory"),
    "files of nothing": ({".": "0" * 64}, "not in the directory"),
    "seed": (-1, "seed"),
    "scenario": (7, "scenario"),
    "versions": ({"core": 1}, "versions"),
    "format": (99, "format 99"),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_of_strangers_is_refused_with_a_sentence(good: bytes, name: str, tmp_path: Path) -> None:
    place = tmp_path / "sent"
    for path, data in inside(good).items():
        if "/run/" in path:
            file = place / path.partition("/run/")[2]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    manifest = json.loads((place / "manifest.json").read_text())
    value, told = MANIFESTS[name]
    manifest[name.partition(" ")[0]] = value
    (place / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(MistakeError, match=told):
        rundir.rerun(place)


def test_half_a_letter_in_a_manifest_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(
        '{"scenario": "\\ud800", "file": "", "seed": 1, "versions": {}, "format": 1}'
    )
    with pytest.raises(MistakeError, match="not JSON"):
        rundir.rerun(tmp_path)


def test_a_run_that_never_ends_is_given_up(penstock: Command, tmp_path: Path) -> None:
    place = tmp_path / "long"
    rundir.write(engine.simulate(Scenario(SCENARIO.replace('"5s"', '"2s"'), "small.toml")), place)
    text = SCENARIO.replace('"5s"', '"20h"')
    manifest = json.loads((place / "manifest.json").read_text())
    manifest |= {"scenario": text, "scenario_sha256": hashlib.sha256(text.encode()).hexdigest()}
    for key in ("resolved", "resolved_sha256"):
        del manifest[key]
    (place / "manifest.json").write_text(json.dumps(manifest))
    files = {f"a/run/{name}": (place / name).read_bytes() for name in ("manifest.json", "summary.json")}
    (tmp_path / "long.zip").write_bytes(packed(with_sums(files)))
    done = penstock("runs", "rerun", "long.zip", "--most", "1s")
    assert (done.returncode, done.stdout) == (2, "")
    assert "given up after 1s (--most)" in done.stderr


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_ended_leaves_no_folder(good: bytes, ended_by: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "sent.zip").write_bytes(good)
    place = tmp_path / "temporary"
    code = (
        "import sys, time; from pathlib import Path; from penstock.exports import pack\n"
        "with pack.unpacked(Path(sys.argv[1])): print(flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "sent.zip")], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    folders = list(place.iterdir())
    assert len(folders) == 1
    child.send_signal(ended_by)
    child.wait(timeout=20)
    child.stdout.close()
    if ended_by == signal.SIGKILL:  # nobody can tidy up then: the next one does, and `penstock doctor` tells
        assert set(folders) <= set(testbed.leftovers())
        with pack.unpacked(tmp_path / "sent.zip"):
            assert not folders[0].exists()


def fragment(data: bytes) -> str:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    return link.MARK + base64.urlsafe_b64encode(deflater.compress(data) + deflater.flush()).decode().rstrip("=")


LINKS = {
    "letters that are none": ("p1=üüüü", "damaged"),
    "base64 is damaged": ("p1=AA*A", "damaged"),
    "deflate is damaged": ("p1=____", "damaged"),
    "nothing": ("p1=", "damaged"),
    "no text": (fragment(b"\xff\xfe"), "damaged"),
    "cut": (fragment(SCENARIO.encode())[:-9], "damaged"),
    "a bomb": (fragment(bytes(20_000_000)), "more than"),
    "many scenarios": (fragment(b"\x1e" * 500), "501 scenarios; at most 100"),
}


@pytest.mark.parametrize("name", LINKS)
def test_a_link_that_is_none_is_refused_with_a_sentence(name: str) -> None:
    text, told = LINKS[name]
    with pytest.raises(MistakeError, match=told):
        link.scenarios(text)


def test_a_link_neither_reads_nor_executes_files(tmp_path: Path, penstock: Command) -> None:
    (tmp_path / "mine.py").write_text("open('executed', 'w').close()\n")
    (tmp_path / "trace.csv").write_text("secret\n")
    for keys in ('[aqm]\nname = "mine.py:Mine"\n', '[aqm]\nname = "droptail"\n[[changes]]\ntrace = "trace.csv"\n'):
        done = penstock("run", fragment(SCENARIO.replace('[aqm]\nname = "droptail"\n', keys).encode()), "--json")
        assert done.returncode == 2, done.stdout
        assert "Traceback" not in done.stderr
        assert "secret" not in done.stderr
    assert not (tmp_path / "executed").exists()
    assert list((tmp_path / "temporary").iterdir()) == []
