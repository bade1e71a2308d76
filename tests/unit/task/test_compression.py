"""Compressed input and output."""

import bz2
import gzip
import shutil
import subprocess
import zlib

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from boathouse_task import compression
from boathouse_task.contract import InputFile, Reason
from boathouse_task.errors import TaskError
from boathouse_task.formats import OutputFormat
from boathouse_task.splits import plan

COMPRESS = {"gzip": gzip.compress, "bzip2": bz2.compress, "zstd": zstd.compress, "deflate": zlib.compress}
DECOMPRESS = {"gzip": gzip.decompress, "bzip2": bz2.decompress, "zstd": zstd.decompress, "deflate": zlib.decompress}
TEXT = b"".join(b"%d the boat and the house\n" % number for number in range(3000))
codecs = pytest.mark.parametrize("codec", list(COMPRESS))


def read(data, codec, size=1000):
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(compression.decompressed(chunks, codec, f"s3://b/file{compression.SUFFIXES[codec]}"))


@codecs
@given(members=st.lists(st.binary(max_size=300), min_size=1, max_size=4), size=st.integers(1, 50))
def test_members_one_after_another_are_read_to_the_end(codec, members, size):
    assert read(b"".join(map(COMPRESS[codec], members)), codec, size) == b"".join(members)


@codecs
@given(chunks=st.lists(st.binary(max_size=300), max_size=5))
def test_what_is_written_is_what_others_read(codec, chunks):
    assert DECOMPRESS[codec](b"".join(compression.compressed(chunks, codec))) == b"".join(chunks)


@codecs
def test_a_file_that_grows_a_thousandfold_comes_in_bounded_pieces(codec):
    data = COMPRESS[codec](bytes(50_000_000))
    pieces = [len(piece) for piece in compression.decompressed([data], codec, "u")]
    assert (sum(pieces), max(pieces) <= 1 << 20) == (50_000_000, True)


@codecs
def test_a_file_cut_short_is_said_to_be(codec):
    with pytest.raises(TaskError, match="is truncated") as failed:
        read(COMPRESS[codec](TEXT)[:-10], codec)
    assert (failed.value.reason, failed.value.user_error) == (Reason.CORRUPT_INPUT, True)


@codecs
def test_a_file_that_is_something_else_is_said_to_be(codec):
    with pytest.raises(TaskError, match=rf"s3://b/file\S+ cannot be read as {codec}"):
        read(TEXT, codec)


@codecs
def test_a_flipped_bit_is_noticed(codec):
    data = bytearray(b"".join(compression.compressed([TEXT], codec)))
    data[len(data) // 2] ^= 16
    with pytest.raises(TaskError, match="CorruptInput"):
        read(bytes(data), codec)


def test_the_zeros_behind_a_gzip_member_do_not_matter():
    assert read(gzip.compress(b"a\n") + bytes(5000) + gzip.compress(b"b\n") + bytes(10), "gzip", 700) == b"a\nb\n"


def test_the_system_s_zstd_reads_ours_and_the_other_way_round():
    tool = shutil.which("zstd")
    if tool is None:
        pytest.skip("no zstd here")
    packed = subprocess.run([tool, "-q", "-c"], input=TEXT, stdout=subprocess.PIPE, check=True).stdout
    assert read(packed, "zstd") == TEXT


@codecs
def test_compressed_files_are_not_split(codec):
    file = InputFile(url=f"s3://b/a{compression.SUFFIXES[codec]}", size_bytes=1000)
    assert [split.length_bytes for split in plan([file], split_max_bytes=100).splits] == [1000]


@codecs
def test_a_job_reads_compressed_files_beside_plain_ones_and_compresses_its_output(workshop, codec):
    workshop.given(f"a{compression.SUFFIXES[codec]}", COMPRESS[codec](TEXT) + COMPRESS[codec](b"last"))
    workshop.given("b", b"plain\n")
    result = workshop.run_job(["cat"], reducer=["cat"], output_compression=codec, split_max_bytes=100)
    (part,) = workshop.output.glob("part-*")
    assert part.name == f"part-00000{compression.SUFFIXES[codec]}"
    assert sorted(DECOMPRESS[codec](part.read_bytes()).splitlines()) == sorted(
        [*(line + b"\t" for line in TEXT.splitlines()), b"last\t", b"plain\t"]
    )
    assert result.bytes_total == part.stat().st_size


@codecs
def test_a_map_only_job_compresses_too(workshop, codec):
    workshop.given("a", TEXT)
    workshop.run_job(["cat"], output_compression=codec, output_format=OutputFormat(key_only=True))
    assert b"".join(map(DECOMPRESS[codec], workshop.parts())) == TEXT


@pytest.mark.parametrize("name", ["a.snappy", "a.lz4"])
def test_a_file_that_only_hadoop_can_decompress_fails_the_setup(workshop, name):
    workshop.given(name, TEXT)
    failed = workshop.failure(["cat"])
    assert (failed.reason, failed.user_error) == (Reason.CORRUPT_INPUT, True)
    assert f"{name} cannot be decompressed: write it as .gz" in failed.message


def test_a_corrupt_input_file_fails_the_map_though_the_mapper_does_not_mind(workshop):
    workshop.given("a.gz", gzip.compress(TEXT)[:-5])
    failed = workshop.failure(["cat"])
    assert (failed.reason, failed.user_error) == (Reason.CORRUPT_INPUT, True)
    assert "a.gz" in failed.message
