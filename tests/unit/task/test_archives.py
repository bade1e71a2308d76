"""Archives of a job: unpacked into a folder of their names, and never beyond it."""

import io
import tarfile
import zipfile

import pytest

from boathouse_task.contract import ArchiveSource, Reason
from tests.streaming.jobs import packed

FILES = {"words/list": b"one\ntwo\n", "read.me": b"me\n"}
SHOW = ["sh", "-c", "cd d; find . -type f | sort; cat words/list"]


def tar(*entries: tuple[str, bytes, str, str]) -> bytes:
    """A tar archive of (name, type, link's target, content)."""
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as made:
        for name, kind, target, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, target, len(content)
            made.addfile(entry, io.BytesIO(content.encode()))
    return memory.getvalue()


def run(workshop, name: str, content: bytes, command=SHOW, max_bytes: int = 1 << 20):
    (workshop.folder / name).write_bytes(content)
    workshop.given("in", b"")
    archive = ArchiveSource(name="d", url=f"file://{workshop.folder}/{name}", max_bytes=max_bytes)
    return workshop.spec(command, archives=[archive])


@pytest.mark.parametrize("kind", ["zip", "jar", "tar", "tar.gz", "tgz"])
def test_commands_find_an_archives_files_in_the_folder_of_its_name(workshop, kind):
    spec = run(workshop, f"a.{kind}", packed(kind, FILES))
    task = workshop.task(spec)
    task.place_files()
    assert (task.folder / "d" / "words" / "list").read_bytes() == b"one\ntwo\n"
    assert b"".join(task.commands.run(SHOW, ())) == b"./read.me\n./words/list\none\ntwo\n"


def test_links_within_the_archive_are_kept(workshop):
    content = tar(
        ("real", tarfile.REGTYPE, "", "x\n"),
        ("link", tarfile.SYMTYPE, "real", ""),
        ("deep/link", tarfile.SYMTYPE, "../real", ""),
        ("hard", tarfile.LNKTYPE, "real", ""),
    )
    task = workshop.task(run(workshop, "a.tar", content))
    task.place_files()
    read = ["sh", "-c", "cd d; cat link deep/link hard"]
    assert b"".join(task.commands.run(read, ())) == b"x\nx\nx\n"


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([("../out", tarfile.REGTYPE, "", "x")], id="name with .."),
        pytest.param([("/out", tarfile.REGTYPE, "", "x")], id="absolute name"),
        pytest.param([("a/../../out", tarfile.REGTYPE, "", "x")], id="name with .. within"),
        pytest.param([("l", tarfile.SYMTYPE, "..", ""), ("l/out", tarfile.REGTYPE, "", "x")], id="through a link"),
        pytest.param([("l", tarfile.SYMTYPE, "/etc/passwd", "")], id="link to an absolute path"),
        pytest.param(
            [("l", tarfile.SYMTYPE, "d/../x", ""), ("d", tarfile.SYMTYPE, ".", "")], id="link by a later link"
        ),
        pytest.param([("l", tarfile.LNKTYPE, "../../secret", "")], id="hard link to the outside"),
        pytest.param([("p", tarfile.FIFOTYPE, "", "")], id="FIFO"),
        pytest.param([("c", tarfile.CHRTYPE, "", "")], id="device"),
    ],
)
def test_nothing_leaves_the_folder(workshop, entries):
    result = workshop.run(run(workshop, "a.tar", tar(*entries)))
    assert (result.reason, result.user_error) == (Reason.INVALID_ARCHIVE, True)
    assert not list(workshop.folder.rglob("out"))[1:]  # the first is the output's folder, if any


def test_a_zip_with_a_name_that_leads_out_is_refused(workshop):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as made:
        made.writestr("../evil", b"x")
    result = workshop.run(run(workshop, "a.zip", memory.getvalue()))
    assert result.reason == Reason.INVALID_ARCHIVE
    assert "leads out of the folder" in result.message


def test_a_bomb_ends_at_the_maximum_size(workshop):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("zeros", bytes(50_000_000))
    result = workshop.run(run(workshop, "a.zip", memory.getvalue(), max_bytes=1_000_000))
    assert (result.reason, result.user_error) == (Reason.INVALID_ARCHIVE, True)
    assert "unpacks to more than its maxSize of 1000000 bytes" in result.message


def test_hard_links_count_as_copies(workshop):
    entries = [("a", tarfile.REGTYPE, "", "x" * 600_000), ("b", tarfile.LNKTYPE, "a", "")]
    result = workshop.run(run(workshop, "a.tar", tar(*entries), max_bytes=1_000_000))
    assert "unpacks to more than its maxSize" in result.message


@pytest.mark.parametrize(
    ("name", "content"), [("a.zip", b"no zip"), ("a.tar.gz", b"\x1f\x8b damaged"), ("a.rar", b"x")]
)
def test_a_file_that_is_no_archive_is_named(workshop, name, content):
    result = workshop.run(run(workshop, name, content))
    assert result.reason == Reason.INVALID_ARCHIVE
    assert name in result.message


def test_an_archive_that_is_not_there_is_named(workshop):
    spec = run(workshop, "a.zip", b"")
    (workshop.folder / "a.zip").unlink()
    assert workshop.run(spec).reason == Reason.FILE_NOT_FOUND
