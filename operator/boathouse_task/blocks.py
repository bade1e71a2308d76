"""The files of Hadoop's SnappyCodec and Lz4Codec: blocks of chunks, with a length before each.

A block is the length of its content, then chunks until it is whole; a chunk is the length of what follows it, and that.
Lengths have four bytes, the highest first (`BlockCompressorStream` of Hadoop). There is no checksum.
"""

import struct
import sys

import cramjam

_LENGTH = struct.Struct(">I")
_CHUNK_BYTES = 256 * 1024
"""Content of a chunk that is written: Hadoop's buffer (`io.compression.codec.snappy.buffersize`)."""
_MOST_CHUNK_BYTES = 64 * 1024 * 1024
"""Maximum of a chunk that is read, packed or not: damaged lengths must not take the memory of the task."""
_LZ4_EXPANSION = 256
"""More than LZ4 makes of a byte: 255."""


def _unpack_snappy(chunk: bytes, most_bytes: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(chunk) > most_bytes:
        raise ValueError("a chunk has more bytes than its block")
    return bytes(cramjam.snappy.decompress_raw(chunk))


def _unpack_lz4(chunk: bytes, most_bytes: int) -> bytes:
    content = bytearray(min(most_bytes, _LZ4_EXPANSION * len(chunk)))
    length = cramjam.lz4.decompress_block_into(chunk, content, output_len=len(content))
    return bytes(content[:length])


class Decompressor:
    """Reads blocks of snappy or lz4, with the interface of the decompressors of the standard library."""

    unused_data = b""

    def __init__(self, codec: str) -> None:
        self._unpack = {"snappy": _unpack_snappy, "lz4": _unpack_lz4}[codec]
        self._packed, self._content, self._block_bytes = bytearray(), bytearray(), 0

    @property
    def eof(self) -> bool:
        """Whether all blocks that have begun are whole; others may follow."""
        return not (self._packed or self._content or self._block_bytes)

    def decompress(self, data: bytes, max_length: int = sys.maxsize) -> bytes:
        """Return what is known of the content, at most so many bytes. Raises ValueError if the data are damaged."""
        self._packed += data
        while len(self._content) < max_length and self._read_chunk():
            pass
        piece = bytes(self._content[:max_length])
        del self._content[: len(piece)]
        return piece

    def _read_chunk(self) -> bool:
        """Read a chunk if it is there whole."""
        while not self._block_bytes:
            if len(self._packed) < _LENGTH.size:
                return False
            (self._block_bytes,) = _LENGTH.unpack_from(self._packed)  # an empty file has a block of no bytes
            del self._packed[: _LENGTH.size]
        if len(self._packed) < _LENGTH.size:
            return False
        (length,) = _LENGTH.unpack_from(self._packed)
        if length > _MOST_CHUNK_BYTES:
            raise ValueError(f"a chunk of {length} bytes")
        end = _LENGTH.size + length
        if len(self._packed) < end:
            return False
        try:
            content = self._unpack(bytes(self._packed[_LENGTH.size : end]), min(self._block_bytes, _MOST_CHUNK_BYTES))
        except cramjam.DecompressionError as error:
            raise ValueError(str(error)) from None
        del self._packed[:end]
        self._content += content
        self._block_bytes -= len(content)
        return True


class SnappyCompressor:
    """Writes blocks of one chunk."""

    def __init__(self) -> None:
        self._content = bytearray()

    def compress(self, data: bytes) -> bytes:
        """Take data; return the blocks that are whole."""
        self._content += data
        whole = len(self._content) - len(self._content) % _CHUNK_BYTES
        blocks = [_block(bytes(self._content[at : at + _CHUNK_BYTES])) for at in range(0, whole, _CHUNK_BYTES)]
        del self._content[:whole]
        return b"".join(blocks)

    def flush(self) -> bytes:
        """Return the last block; in an empty file, one of no bytes."""
        return _block(bytes(self._content)) if self._content else _LENGTH.pack(0)


def _block(content: bytes) -> bytes:
    chunk = bytes(cramjam.snappy.compress_raw(content))
    return _LENGTH.pack(len(content)) + _LENGTH.pack(len(chunk)) + chunk
