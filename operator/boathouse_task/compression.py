"""Read and write compressed files, recognized by their extensions like Hadoop's codecs.

One map reads a whole compressed file: most codecs cannot be split, and the split points of bzip2 are not used. Files
of several members (`cat a.gz b.gz`, pbzip2, zstd's frames) are read to their end.
"""

import bz2
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from boathouse_task.contract import Reason
from boathouse_task.errors import TaskError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from boathouse_task import blocks

SUFFIXES = {"gzip": ".gz", "bzip2": ".bz2", "zstd": ".zst", "deflate": ".deflate", "snappy": ".snappy", "lz4": ".lz4"}
"""Extension of each codec's files."""
WRITTEN = tuple(codec for codec in SUFFIXES if codec != "lz4")
"""Codecs of output files. The library that Hadoop needs for Lz4Codec is not in its own distribution."""
_IN_BLOCKS = frozenset({"snappy", "lz4"})
_MAY_BE_EMPTY = _IN_BLOCKS | {"bzip2"}
"""Codecs by which Hadoop reads a file of no bytes. Files of the others have at least one member."""
_OUTPUT_BYTES = 1024 * 1024
"""Maximum output of one decompression step: a file of zeros expands by a factor of 1,000."""


def codec_of(path: str) -> str | None:
    """Return the codec of a file of this name; None if it is not compressed."""
    return next((codec for codec, suffix in SUFFIXES.items() if path.endswith(suffix)), None)


def is_content(path: str, size_bytes: int) -> bool:
    """Return whether a file of this name has content to read, or lacks content that it should have."""
    codec = codec_of(path)
    return size_bytes > 0 or (codec is not None and codec not in _MAY_BE_EMPTY)


_GZIP_BITS, _ZLIB_BITS = 31, 15


class _Inflate:
    """zlib's decompressor with the interface of the others: it keeps unused input."""

    def __init__(self, bits: int) -> None:
        self._inner = zlib.decompressobj(wbits=bits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


_Decompressor: TypeAlias = "_Inflate | bz2.BZ2Decompressor | zstd.ZstdDecompressor | blocks.Decompressor"


class _Compressor(Protocol):
    def compress(self, data: bytes) -> bytes: ...
    def flush(self) -> bytes: ...


def _of_blocks(codec: str) -> _Decompressor:
    from boathouse_task import blocks  # its library is large, and few jobs need it

    return blocks.Decompressor(codec)


def _snappy() -> _Compressor:
    from boathouse_task import blocks

    return blocks.SnappyCompressor()


_READERS: dict[str, Callable[[], _Decompressor]] = {
    "gzip": partial(_Inflate, _GZIP_BITS),
    "deflate": partial(_Inflate, _ZLIB_BITS),
    "bzip2": bz2.BZ2Decompressor,
    "zstd": zstd.ZstdDecompressor,
    **{codec: partial(_of_blocks, codec) for codec in _IN_BLOCKS},
}
_WRITERS: dict[str, Callable[[], _Compressor]] = {
    "gzip": partial(zlib.compressobj, wbits=_GZIP_BITS),
    "deflate": partial(zlib.compressobj, wbits=_ZLIB_BITS),
    "bzip2": bz2.BZ2Compressor,
    "zstd": partial(zstd.ZstdCompressor, options={zstd.CompressionParameter.checksum_flag: 1}),
    "snappy": _snappy,
}
_BROKEN = (zlib.error, zstd.ZstdError, OSError, EOFError, ValueError)


def decompressed(chunks: Iterable[bytes], codec: str, url: str, *, is_start_of_file: bool = False) -> Iterator[bytes]:
    """Yield the content of a file, or of its first bytes, in limited pieces. Raises TaskError: CorruptInput."""
    stream: _Decompressor | None = None
    read, has_data = 0, codec in _MAY_BE_EMPTY  # a file of another codec has at least one member
    for chunk in chunks:
        read += len(chunk)
        has_data = has_data or bool(chunk.lstrip(b"\0"))
        data, pending = chunk, True
        while pending:
            if stream is None:
                if codec not in _IN_BLOCKS:
                    data = data.lstrip(b"\0")  # gzip files on tapes are padded with zeros
                if not data:
                    break
                stream = _READERS[codec]()
            try:
                piece = stream.decompress(data, _OUTPUT_BYTES)
            except _BROKEN as error:
                raise _corrupt(url, f"cannot be read as {codec} near byte {read} ({error})") from None
            if piece:
                yield piece
            pending, data = len(piece) == _OUTPUT_BYTES, b""
            if stream.eof:
                data, stream, pending = stream.unused_data, None, True
    if not has_data or (stream is not None and not is_start_of_file):
        what = f"is truncated within its {codec} data, after" if has_data else f"has no {codec} data in its"
        raise _corrupt(url, f"{what} {read} bytes")


def _corrupt(url: str, what: str) -> TaskError:
    return TaskError(Reason.CORRUPT_INPUT, f"{url} {what}: write it again, or rename it if it is not compressed")


def compressed(chunks: Iterable[bytes], codec: str) -> Iterator[bytes]:
    """Yield the compressed chunks, deterministically; levels are Hadoop's defaults (zstd: 3)."""
    if codec not in _WRITERS:
        what = f"spec.outputCompression {codec!r} is not gzip, bzip2, zstd, deflate or snappy"
        raise TaskError(Reason.INVALID_SPEC, what)
    writer = _WRITERS[codec]()
    for chunk in chunks:
        piece = writer.compress(chunk)
        if piece:
            yield piece
    yield writer.flush()
