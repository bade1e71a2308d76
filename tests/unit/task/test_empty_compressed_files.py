"""A file of no bytes whose name says that it is compressed: what its codec makes of it in Hadoop."""

import pytest

from boathouse_task import compression
from boathouse_task.contract import Reason
from boathouse_task.errors import TaskError

BROKEN = ("gzip", "deflate", "zstd")
READ = ("bzip2", "snappy", "lz4")


@pytest.mark.parametrize("codec", BROKEN)
@pytest.mark.parametrize("data", [b"", bytes(10)], ids=["empty", "zeros"])
def test_a_file_without_any_compressed_data_is_corrupt(codec, data):
    with pytest.raises(TaskError, match=rf"s3://b/file has no {codec} data in its {len(data)} bytes") as failed:
        list(compression.decompressed([data], codec, "s3://b/file"))
    assert (failed.value.reason, failed.value.user_error) == (Reason.CORRUPT_INPUT, True)


@pytest.mark.parametrize("codec", READ)
def test_an_empty_file_of_codecs_that_know_it_has_no_content(codec):
    assert list(compression.decompressed([], codec, "s3://b/file")) == []


@pytest.mark.parametrize("codec", compression.WRITTEN)
def test_what_is_written_of_no_content_is_read(codec):
    packed = list(compression.compressed([], codec))
    assert b"".join(compression.decompressed(packed, codec, "u")) == b""


@pytest.mark.parametrize("fields", [{}, {"combine_files": True}], ids=["a map each", "combined"])
def test_an_empty_gzip_file_fails_the_job_and_is_named(job_folder, fields):
    job_folder.write_input("a.txt", b"a\n")
    job_folder.write_input("upload.gz", b"")
    failed = job_folder.fail_job(**fields)
    assert (failed.reason, failed.user_error) == (Reason.CORRUPT_INPUT, True)
    assert "in/upload.gz has no gzip data" in failed.message


@pytest.mark.parametrize("fields", [{}, {"combine_files": True}], ids=["a map each", "combined"])
def test_an_empty_bzip2_file_adds_nothing(job_folder, fields):
    job_folder.write_input("a.txt", b"a\n")
    job_folder.write_input("upload.bz2", b"")
    job_folder.run_job(**fields)
    assert b"".join(job_folder.parts()) == b"a\t\n"
