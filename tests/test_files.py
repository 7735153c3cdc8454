"""Writing files: whole or not at all, through links, into pipes and devices, and nothing else."""

import contextlib
import io
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from ckce._input.files import is_standard_output, write_file

posix = pytest.mark.skipif(os.name != "posix", reason="modes, links and pipes of POSIX")
linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
NOBODY = 65534


@contextlib.contextmanager
def folder_of_nobody():
    """A folder in which not even root has more rights than its mode gives."""
    with tempfile.TemporaryDirectory() as name:
        root = os.geteuid() == 0
        if root:
            os.chown(name, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)
            os.chmod(name, 0o700)


def test_pieces_replace_what_was_there(tmp_path):
    path = tmp_path / "page.html"
    for pieces in ([b"old"], [b"new", memoryview(b" and long")], []):
        write_file(path, iter(pieces))
        assert path.read_bytes() == b"".join(map(bytes, pieces))
        assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    write_file(os.fsencode(path), [b"bytes"])
    assert path.read_bytes() == b"bytes"


def test_what_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "page.html"
    path.write_bytes(b"old")

    def pieces():
        yield b"new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_file(path, pieces())
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


@posix
def test_modes_are_kept(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o600)

    def pieces():
        (temporary,) = (file for file in tmp_path.iterdir() if file != path)
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        yield b"new"

    write_file(path, pieces())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "fresh", [b"new"])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640


@posix
def test_links_are_written_through(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far/page.html")
    for content in (b"first", b"second"):
        write_file(tmp_path / "link", [content])
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "far" / "page.html").read_bytes() == content
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match=r"/a\b"):
        write_file(tmp_path / "a", [b"x"])


@posix
def test_files_of_others_stay(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    (tmp_path / "page.html.part").symlink_to(victim)
    (tmp_path / "page.html.tmp").write_bytes(b"mine, too")
    write_file(tmp_path / "page.html", [b"page"])
    assert victim.read_bytes() == b"mine"
    assert (tmp_path / "page.html.tmp").read_bytes() == b"mine, too"


@posix
def test_pipes_and_devices(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    content = bytes(300_000)  # more than a pipe holds
    write_file(pipe, [content, b"end"])
    reader.join()
    assert read == [content + b"end"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    write_file("/dev/null", [b"gone"])
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("name", ["-", pytest.param("/dev/stdout", marks=posix)])
def test_standard_output(tmp_path, name):
    code = f"from ckce._input.files import write_file; write_file({name!r}, [b'a', b'b'])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stdout == b"ab"
    assert list(tmp_path.iterdir()) == []


@posix
def test_pipes_of_the_shell(tmp_path):
    """As bash makes them of >(gzip > page.gz): /dev/fd/N, which is a link to no path."""
    (tmp_path / "link").symlink_to("/dev/fd/1")
    code = "import sys; from ckce._input.files import write_file; write_file(sys.argv[1], [b'ab'])"
    for name in ("link", "/dev/fd/2"):
        done = subprocess.run(
            [sys.executable, "-c", code, name], cwd=tmp_path, capture_output=True, check=True
        )
        assert done.stdout + done.stderr == b"ab"
    assert (tmp_path / "link").is_symlink()
    assert len(list(tmp_path.iterdir())) == 1


@linux
@pytest.mark.parametrize(
    "form", ["/dev/fd/{}", "//dev/fd/{}", "/proc/self/fd/{}", "/proc/{pid}/fd/{}", "link"]
)
def test_open_files_are_written_where_they_stand(tmp_path, form):
    path = tmp_path / "all"
    with path.open("wb", buffering=0) as file:
        name = form.format(file.fileno(), pid=os.getpid())
        if form == "link":
            (tmp_path / "near").symlink_to(f"/dev/fd/{file.fileno()}")
            name = tmp_path / "link"
            name.symlink_to("near")
        file.write(b"head ")
        write_file(name, [b"page", b" "])
        file.write(b"end")
    assert path.read_bytes() == b"head page end"
    assert {file.name for file in tmp_path.iterdir()} - {"link", "near"} == {"all"}
    with pytest.raises(OSError, match=r"/fd/|link"):  # it is closed
        write_file(name, [b"page"])


@linux
def test_files_without_a_name_and_files_of_other_processes(tmp_path):
    with tempfile.TemporaryFile() as file:
        write_file(f"/dev/fd/{file.fileno()}", [b"page"])
        file.seek(0)
        assert file.read() == b"page"
    path = tmp_path / "log"
    path.write_bytes(b"before ")
    with (
        path.open("ab") as log,
        subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=log) as cat,
    ):
        write_file(f"/proc/{cat.pid}/fd/1", [b"page"])
    assert path.read_bytes() == b"before page"


@linux
def test_links_to_standard_output(tmp_path):
    (tmp_path / "link").symlink_to("/dev/stdout")
    for name in ("-", "/dev/stdout", "//dev/stdout", "/proc/thread-self/fd/1", tmp_path / "link"):
        assert is_standard_output(name), name
    assert not is_standard_output("/dev/stderr")
    code = "import sys; from ckce._input.files import write_file; print('a'); write_file(sys.argv[1], [b'b'])"
    path = tmp_path / "log"
    path.write_bytes(b"before ")
    with path.open("ab") as log:
        words = [sys.executable, "-c", code, str(tmp_path / "link")]
        subprocess.run(words, stdout=log, check=True)
    assert path.read_bytes() == b"before a\nb"


def test_standard_output_that_takes_no_bytes():
    with (
        contextlib.redirect_stdout(io.StringIO()),
        pytest.raises(ValueError, match="no bytes, got '-'"),
    ):
        write_file("-", [b"page"])


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away"
)
def test_owner_and_group_are_kept(tmp_path):
    path = tmp_path / "page.html"
    path.write_bytes(b"old")
    path.chmod(0o600)
    os.chown(path, NOBODY, 12)
    write_file(path, [b"new"])
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (NOBODY, 12, 0o600)
    assert path.read_bytes() == b"new"


@posix
def test_a_folder_that_cannot_be_listed():
    with folder_of_nobody() as folder:
        folder.chmod(0o333)
        write_file(folder / "page.html", [b"page"])
        assert (folder / "page.html").read_bytes() == b"page"


def test_folders_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a directory; name a file in it"):
        write_file(tmp_path, [b"x"])
    with pytest.raises(
        FileNotFoundError, match=r"the folder .*nowhere of .*html does not exist; make"
    ):
        write_file(tmp_path / "nowhere" / "page.html", [b"x"])


def test_what_names_no_file(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name in ("", "new/", "new/.", "new/.."):
        with pytest.raises(ValueError, match=f"path must name a file, got '{name}'"):
            write_file(name, [b"x"])
    with pytest.raises(FileNotFoundError, match=r"the folder .*/~ of ~/page.html does not exist"):
        write_file("~/page.html", [b"x"])
    os.symlink("gone/page.html", "dangling")
    with pytest.raises(FileNotFoundError, match=r"the folder .*/gone of dangling does not exist"):
        write_file("dangling", [b"x"])
    os.unlink("dangling")
    assert list(tmp_path.rglob("*")) == [tmp_path / "here"]


@posix
def test_errors_of_the_system_name_the_file(tmp_path):
    if Path("/dev/full").exists():
        with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
            write_file("/dev/full", [b"x"])
    long = str(tmp_path / ("n" * 256))
    with pytest.raises(OSError, match=rf"File name too long: '{long}'$"):
        write_file(long, [b"x"])
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError, match=f"Broken pipe: '/dev/fd/{writing}'"):
        write_file(f"/dev/fd/{writing}", [b"x"])
    os.close(writing)
    with folder_of_nobody() as folder:
        (folder / "page.html").write_bytes(b"old")
        folder.chmod(0o500)
        with pytest.raises(
            PermissionError, match=f"the folder {folder} of .*html must be writable"
        ):
            write_file(folder / "page.html", [b"x"])
        assert (folder / "page.html").read_bytes() == b"old"


def test_many_writers(tmp_path):
    path = tmp_path / "page.html"
    contents = [bytes([48 + i]) * 200_000 for i in range(4)]
    path.write_bytes(contents[0])
    seen = set()
    done = threading.Event()

    def read():
        while not done.is_set():
            seen.add(path.read_bytes())

    def write(content):
        for _ in range(10):
            write_file(path, [content])

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert seen <= set(contents)
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
