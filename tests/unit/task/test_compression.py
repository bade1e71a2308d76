"""Compressed input and output."""

import bz2
import contextlib
import functools
import gzip
import shutil
import struct
import subprocess
import zlib

import cramjam
import pytest
from backports import zstd
from hypothesis import given, strategies as st

from boathouse_task import compression
from boathouse_task.contract import InputFile, OutputFormat, Reason
from boathouse_task.errors import TaskError
from boathouse_task.splits import plan


def snappy(data: bytes, chunk_bytes: int = 100_000, chunks: int = 3) -> bytes:
    """Blocks of some chunks, as Hadoop's SnappyCodec writes them."""
    return in_blocks(data, chunk_bytes, chunks, cramjam.snappy.compress_raw)


def lz4(data: bytes, chunk_bytes: int = 100_000, chunks: int = 3) -> bytes:
    """Blocks of some chunks, as Hadoop's Lz4Codec writes them."""
    return in_blocks(data, chunk_bytes, chunks, functools.partial(cramjam.lz4.compress_block, store_size=False))


def in_blocks(data, chunk_bytes, chunks, pack):
    length = struct.Struct(">I").pack
    found = b""
    for start in range(0, len(data), chunk_bytes * chunks):
        block = data[start : start + chunk_bytes * chunks]
        packed = [bytes(pack(block[at : at + chunk_bytes])) for at in range(0, len(block), chunk_bytes)]
        found += length(len(block)) + b"".join(length(len(chunk)) + chunk for chunk in packed)
    return found or length(0)


def unsnappy(data: bytes) -> bytes:
    """The content of blocks of one chunk each."""
    found = b""
    while data:
        whole, (packed,) = data[:4], struct.unpack(">I", data[4:8] or bytes(4))
        content = bytes(cramjam.snappy.decompress_raw(data[8 : 8 + packed])) if packed else b""
        assert struct.pack(">I", len(content)) == whole
        found, data = found + content, data[8 + packed :]
    return found


COMPRESS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "zstd": zstd.compress,
    "deflate": zlib.compress,
    "snappy": snappy,
    "lz4": lz4,
}
DECOMPRESS = {
    "gzip": gzip.decompress,
    "bzip2": bz2.decompress,
    "zstd": zstd.decompress,
    "deflate": zlib.decompress,
    "snappy": unsnappy,
}
TEXT = b"".join(b"%d the boat and the house\n" % number for number in range(3000))
codecs = pytest.mark.parametrize("codec", list(COMPRESS))
written = pytest.mark.parametrize("codec", compression.WRITTEN)
with_checksum = pytest.mark.parametrize("codec", ["gzip", "bzip2", "zstd", "deflate"])


def decompressed(data, codec, size=1000):
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(compression.decompressed(chunks, codec, f"s3://b/file{compression.SUFFIXES[codec]}"))


@codecs
@given(members=st.lists(st.binary(max_size=300), min_size=1, max_size=4), size=st.integers(1, 50))
def test_members_one_after_another_are_read_to_the_end(codec, members, size):
    assert decompressed(b"".join(map(COMPRESS[codec], members)), codec, size) == b"".join(members)


@written
@given(chunks=st.lists(st.binary(max_size=300), max_size=5))
def test_what_is_written_is_what_others_read(codec, chunks):
    assert DECOMPRESS[codec](b"".join(compression.compressed(chunks, codec))) == b"".join(chunks)


@codecs
def test_a_file_that_grows_a_thousandfold_is_read_in_bounded_pieces(codec):
    data = COMPRESS[codec](bytes(8_000_000))
    pieces = [len(piece) for piece in compression.decompressed([data], codec, "u")]
    assert (sum(pieces), max(pieces) <= 1 << 20) == (8_000_000, True)


@codecs
def test_a_file_cut_short_is_said_to_be(codec):
    with pytest.raises(TaskError, match="is truncated") as failed:
        decompressed(COMPRESS[codec](TEXT)[:-10], codec)
    assert (failed.value.reason, failed.value.user_error) == (Reason.CORRUPT_INPUT, True)


@codecs
def test_a_file_that_is_something_else_is_said_to_be(codec):
    with pytest.raises(TaskError, match=rf"s3://b/file\S+ cannot be read as {codec}"):
        decompressed(TEXT, codec)


@with_checksum
def test_a_flipped_bit_is_noticed(codec):
    data = bytearray(b"".join(compression.compressed([TEXT], codec)))
    data[len(data) // 2] ^= 16
    with pytest.raises(TaskError, match="CorruptInput"):
        decompressed(bytes(data), codec)


def test_the_zeros_behind_a_gzip_member_do_not_matter():
    assert (
        decompressed(gzip.compress(b"a\n") + bytes(5000) + gzip.compress(b"b\n") + bytes(10), "gzip", 700) == b"a\nb\n"
    )


def test_what_the_zstd_of_the_system_writes_is_read():
    tool = shutil.which("zstd")
    if tool is None:
        pytest.skip("no zstd here")
    packed = subprocess.run([tool, "-q", "-c"], input=TEXT, stdout=subprocess.PIPE, check=True).stdout
    assert decompressed(packed, "zstd") == TEXT


@codecs
def test_compressed_files_are_not_split(codec):
    file = InputFile(url=f"s3://b/a{compression.SUFFIXES[codec]}", size_bytes=1000)
    assert [split.length_bytes for split in plan([file], split_max_bytes=100).splits] == [1000]


@written
def test_a_job_reads_compressed_files_beside_plain_ones_and_compresses_its_output(job_folder, codec):
    job_folder.write_input(f"a{compression.SUFFIXES[codec]}", COMPRESS[codec](TEXT) + COMPRESS[codec](b"last"))
    job_folder.write_input("b", b"plain\n")
    result = job_folder.run_job(["cat"], reducer=["cat"], output_compression=codec, split_max_bytes=100)
    (part,) = job_folder.output.glob("part-*")
    assert part.name == f"part-00000{compression.SUFFIXES[codec]}"
    assert sorted(DECOMPRESS[codec](part.read_bytes()).splitlines()) == sorted(
        [*(line + b"\t" for line in TEXT.splitlines()), b"last\t", b"plain\t"]
    )
    assert result.bytes_total == part.stat().st_size


@written
def test_a_map_only_job_compresses_too(job_folder, codec):
    job_folder.write_input("a", TEXT)
    job_folder.run_job(["cat"], output_compression=codec, output_format=OutputFormat(key_only=True))
    assert b"".join(map(DECOMPRESS[codec], job_folder.parts())) == TEXT


@pytest.mark.parametrize("codec", ["snappy", "lz4"])
@given(data=st.binary(max_size=300), chunk_bytes=st.integers(1, 50), chunks=st.integers(1, 4), size=st.integers(1, 50))
def test_blocks_of_any_number_of_chunks_are_read(codec, data, chunk_bytes, chunks, size):
    assert decompressed(COMPRESS[codec](data, chunk_bytes, chunks), codec, size) == data


@pytest.mark.parametrize("codec", ["snappy", "lz4"])
@given(data=st.binary(max_size=200))
def test_any_bytes_as_blocks_are_read_or_refused(codec, data):
    with contextlib.suppress(TaskError):
        decompressed(data, codec)


@pytest.mark.parametrize("codec", ["snappy", "lz4"])
def test_a_chunk_that_claims_much_memory_gets_none(codec):
    claims = struct.pack(">II", 2**32 - 1, 6) + b"\xff\xff\xff\xff\x0f\x00"  # in snappy: 4 GiB of content
    with pytest.raises(TaskError, match=f"cannot be read as {codec}"):
        decompressed(claims, codec)


def test_what_is_written_as_snappy_is_in_several_blocks():
    data = bytes(range(256)) * 4000
    assert unsnappy(b"".join(compression.compressed([data[:700_000], data[700_000:]], "snappy"))) == data


def test_a_corrupt_input_file_fails_the_map_though_the_mapper_does_not_mind(job_folder):
    job_folder.write_input("a.gz", gzip.compress(TEXT)[:-5])
    failed = job_folder.fail_job(["cat"])
    assert (failed.reason, failed.user_error) == (Reason.CORRUPT_INPUT, True)
    assert "a.gz" in failed.message
