"""Archives of a job: unpacked into a folder of their names, and never beyond it."""

import io
import tarfile
import zipfile

import pytest

from boathouse_task.contract import ArchiveSource, Reason
from tests.streaming.jobs import packed

FILES = {"words/list": b"one\ntwo\n", "read.me": b"me\n"}
SHOW = ["sh", "-c", "cd d; find . -type f | sort; cat words/list"]


def tar_archive(*entries: tuple[str, bytes, str, str]) -> bytes:
    """A tar archive of (name, type, link's target, content)."""
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as made:
        for name, kind, target, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, target, len(content)
            made.addfile(entry, io.BytesIO(content.encode()))
    return memory.getvalue()


def job_with_archive(job_folder, name: str, content: bytes, max_bytes: int = 1 << 20):
    """Return the parameters of a job whose commands see an archive as the folder d."""
    (job_folder.folder / name).write_bytes(content)
    job_folder.write_input("in", b"")
    archive = ArchiveSource(name="d", url=f"file://{job_folder.folder}/{name}", max_bytes=max_bytes)
    return job_folder.setup_spec(SHOW, archives=[archive])


@pytest.mark.parametrize("kind", ["zip", "jar", "tar", "tar.gz", "tgz"])
def test_commands_find_an_archives_files_in_the_folder_of_its_name(job_folder, kind):
    spec = job_with_archive(job_folder, f"a.{kind}", packed(kind, FILES))
    task = job_folder.task(spec)
    task.place_files()
    assert (task.folder / "d" / "words" / "list").read_bytes() == b"one\ntwo\n"
    assert b"".join(task.commands.run(SHOW, ())) == b"./read.me\n./words/list\none\ntwo\n"


def test_links_within_the_archive_are_kept(job_folder):
    content = tar_archive(
        ("real", tarfile.REGTYPE, "", "x\n"),
        ("link", tarfile.SYMTYPE, "real", ""),
        ("deep/link", tarfile.SYMTYPE, "../real", ""),
        ("hard", tarfile.LNKTYPE, "real", ""),
    )
    task = job_folder.task(job_with_archive(job_folder, "a.tar", content))
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
def test_nothing_leaves_the_folder(job_folder, entries):
    result = job_folder.run_task(job_with_archive(job_folder, "a.tar", tar_archive(*entries)))
    assert (result.reason, result.user_error) == (Reason.INVALID_ARCHIVE, True)
    assert set(job_folder.folder.rglob("out")) <= {job_folder.output}


def test_a_zip_with_a_name_that_leads_out_is_refused(job_folder):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as made:
        made.writestr("../evil", b"x")
    result = job_folder.run_task(job_with_archive(job_folder, "a.zip", memory.getvalue()))
    assert result.reason == Reason.INVALID_ARCHIVE
    assert "leads out of the folder" in result.message


def test_a_bomb_ends_at_the_maximum_size(job_folder):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("zeros", bytes(50_000_000))
    result = job_folder.run_task(job_with_archive(job_folder, "a.zip", memory.getvalue(), max_bytes=1_000_000))
    assert (result.reason, result.user_error) == (Reason.INVALID_ARCHIVE, True)
    assert "unpacks to more than its maxSize of 1000000 bytes" in result.message


def test_hard_links_count_as_copies(job_folder):
    entries = [("a", tarfile.REGTYPE, "", "x" * 600_000), ("b", tarfile.LNKTYPE, "a", "")]
    result = job_folder.run_task(job_with_archive(job_folder, "a.tar", tar_archive(*entries), max_bytes=1_000_000))
    assert "unpacks to more than its maxSize" in result.message


@pytest.mark.parametrize(
    ("name", "content"), [("a.zip", b"no zip"), ("a.tar.gz", b"\x1f\x8b damaged"), ("a.rar", b"x")]
)
def test_a_file_that_is_no_archive_is_named(job_folder, name, content):
    result = job_folder.run_task(job_with_archive(job_folder, name, content))
    assert result.reason == Reason.INVALID_ARCHIVE
    assert name in result.message


def test_an_archive_that_is_not_there_is_named(job_folder):
    spec = job_with_archive(job_folder, "a.zip", b"")
    (job_folder.folder / "a.zip").unlink()
    assert job_folder.run_task(spec).reason == Reason.FILE_NOT_FOUND
