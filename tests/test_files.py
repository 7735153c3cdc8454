"""Writing files: whole or not at all, through links, into pipes and devices, and nothing else."""

import os
import stat
import subprocess
import sys
import threading

import pytest

from ckce._input.files import write_file

posix = pytest.mark.skipif(os.name != "posix", reason="modes, links and pipes of POSIX")


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


def test_folders_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a directory; name a file in it"):
        write_file(tmp_path, [b"x"])
    with pytest.raises(FileNotFoundError):
        write_file(tmp_path / "nowhere" / "page.html", [b"x"])


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
