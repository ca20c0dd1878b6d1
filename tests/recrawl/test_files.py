"""Files are whole or absent: a write succeeds, fails, or is interrupted."""

import errno
import os
import pathlib
import subprocess
import sys
import tempfile

import pyarrow as pa
import pytest

from recrawl.log import files as _files
from recrawl.log.database import database
from recrawl.log.files import temporary_folder, write_atomic
from recrawl.log.formats.base import is_packed
from recrawl.log.formats.checking import Utf8, mended
from recrawl.log.output import table
from recrawl.log.tally import Tally

KILLED = """
import os, sys
from recrawl.log.files import replacing
with replacing(sys.argv[1]) as temporary:
    print(temporary, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_what_a_killed_run_left_is_removed_and_a_running_one_keeps_its_file(tmp_path):
    path = tmp_path / "rates.csv"
    command = [sys.executable, "-c", KILLED, tmp_path / "others.csv"]
    killed = subprocess.run(command, capture_output=True, text=True, check=False)
    left = pathlib.Path(killed.stdout.strip())
    assert left.exists()
    _files._remove_abandoned.cache_clear()
    with _files.replacing(path) as running:
        assert not left.exists()
        _files._remove_abandoned.cache_clear()
        write_atomic(path, b"another")
        assert os.path.exists(running)
    assert os.listdir(tmp_path) == ["rates.csv"]


def test_what_replaces_a_private_file_is_never_open_to_others(tmp_path):
    path, mask = tmp_path / "rates.csv", os.umask(0)
    try:
        path.touch(0o600)
        with _files.replacing(path) as running:
            assert os.stat(running).st_mode & 0o777 == 0o600
    finally:
        os.umask(mask)


def test_a_file_that_cannot_be_made_is_named(tmp_path):
    path = tmp_path / "none" / "rates.csv"
    with pytest.raises(FileNotFoundError) as raised:
        write_atomic(path, b"new")
    assert str(path) in str(raised.value)


def test_of_two_runs_that_make_one_file_the_second_fails(tmp_path):
    path = tmp_path / "rates.csv"
    with (
        pytest.raises(FileExistsError, match=f"another run has made .*{path}"),
        _files.replacing(tmp_path / "state"),  # whose name the error must not get
        _files.replacing(path, force=False),
    ):
        write_atomic(path, b"of the other run", force=False)
    assert path.read_text() == "of the other run"
    assert os.listdir(tmp_path) == ["rates.csv"]


def test_where_folders_cannot_be_locked_the_second_run_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "fcntl", None)
    for _ in range(2):
        with _files.alone(tmp_path / "state"):
            again = _files.alone(tmp_path / "state")
            with pytest.raises(FileExistsError, match=r"another run .*state\.lock"):
                again.__enter__()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("step", ["open", "fsync", "chmod", "replace"])
@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        KeyboardInterrupt(),
        MemoryError(),
    ],
)
def test_old_file_stays_when_a_step_fails(tmp_path, monkeypatch, step, error):
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def failing(*_arguments, **_options):
        raise error

    if step == "open":
        monkeypatch.setattr(_files, "open", failing, raising=False)
    else:
        monkeypatch.setattr(_files.os, step, failing)
    with pytest.raises(type(error)) as raised:
        write_atomic(path, b"new")
    monkeypatch.undo()
    if isinstance(error, OSError):
        assert raised.value.errno == errno.ENOSPC
        assert str(raised.value) == f"[Errno 28] No space left on device: '{path}'", (
            "the error names the file, not the temporary one"
        )
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"], "no temporary file is left"


def test_an_interrupt_right_after_a_rename_leaves_no_temporary_file(
    tmp_path, monkeypatch
):
    rename = os.rename

    def interrupted(*paths):
        rename(*paths)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "file", b"new")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_names_the_file_that_did_not_fit(tmp_path):
    """Two outputs are written at once; a writer in C names none of them."""
    paths = [tmp_path / name for name in ("state.parquet", "rates.parquet")]
    for full in (0, 1):
        with (
            pytest.raises(OSError, match=str(paths[full])),
            table(paths[0]) as state,
            table(paths[1]) as rates,
        ):
            fill([state, rates][full])
        assert not os.listdir(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full and /proc are its own")
def test_the_disk_that_failed_is_named(tmp_path):
    """Temporary files, a file elsewhere, a copy of a log, and the log itself."""
    with pytest.raises(
        OSError, match=rf"TMPDIR names another .*'{tempfile.gettempdir()}'"
    ):
        fill_from_database("temporary")
    with pytest.raises(OSError, match="elsewhere") as raised:
        fill_from_database(tmp_path / "elsewhere")
    assert "TMPDIR" not in str(raised.value)
    log, copy = tmp_path / "log.csv", tmp_path / "copy"
    log.write_bytes(b"url,time,changed\n\xff,2026-01-01,0\na,2026-01-01,0\n")
    copy.mkdir()
    (copy / "log.csv").symlink_to("/dev/full")
    for file, failed in (log, copy / "log.csv"), (pathlib.Path("/proc/self/mem"), None):
        with pytest.raises(OSError, match=rf"\[Errno .*'{failed or file}'"):
            mended(file, copy, Utf8(), 0, Tally())
    with pytest.raises(OSError, match=r"\[Errno .*'/proc/self/mem'"):
        is_packed("/proc/self/mem")


def fill_from_database(name):
    """Copy a table to a full disk: a path, or a file in the temporary folder."""
    with database("200MiB") as (connection, folder):
        path = folder / name
        path.symlink_to("/dev/full")
        connection.execute("copy (select 1) to $path (format csv)", {"path": str(path)})


def fill(output):
    """Write to an output until there is no space."""

    def out_of_space(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    output.write(pa.table({"url": ["a"]}))
    output._writer.write_table = out_of_space
    output.write(pa.table({"url": ["b"]}))


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with a name are of Unix")
def test_a_pipe_is_not_replaced(tmp_path):
    """A file in place of a pipe or a device is lost to who reads or writes it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    (tmp_path / "link").symlink_to(path)
    for name in ("pipe", "link"):
        with pytest.raises(FileExistsError, match=f"a pipe or a device .*{name}"):
            write_atomic(tmp_path / name, b"new")
    assert path.is_fifo()


def test_a_link_stays_and_its_target_is_new(tmp_path):
    (tmp_path / "folder").mkdir()
    path, link = tmp_path / "folder" / "file", tmp_path / "link"
    link.symlink_to(path)
    for content in (b"first", b"second"):  # the link leads nowhere before the first
        write_atomic(link, content)
        assert link.is_symlink()
        assert path.read_bytes() == content


def test_folder_of_a_killed_run_is_removed_by_the_next(tmp_path, monkeypatch):
    code = """if True:
        import sys
        from recrawl.log.files import temporary_folder
        with temporary_folder() as folder:
            (folder / "spilled").touch()
            print(folder.name, flush=True)
            sys.stdin.read()
    """
    (tmp_path / "recrawl-notes").mkdir()  # not ours
    command, names = [sys.executable, "-c", code], ["recrawl-notes"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    env = os.environ | {"TMPDIR": str(tmp_path)}
    with (
        subprocess.Popen(command, env=env, **pipes) as living,
        subprocess.Popen(command, env=env, **pipes) as killed,
    ):
        try:
            names += [run.stdout.readline().strip() for run in (living, killed)]
            killed.kill()
            killed.wait()
            assert sorted(os.listdir(tmp_path)) == sorted(names), (
                "it could not clear up"
            )
            monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
            with temporary_folder() as folder:
                left = sorted([*names[:2], folder.name])
                assert sorted(os.listdir(tmp_path)) == left
            living.communicate()
            assert os.listdir(tmp_path) == names[:1]
        finally:
            living.kill()
