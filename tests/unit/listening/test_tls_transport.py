"""TLS over a socket and a client that are in memory: data, errors, and what a slow or hostile client costs."""

import ast
import asyncio
import datetime as dt
import pathlib
import ssl

import pytest

from boathouse.listening import transports
from boathouse.services.progress import certificates

NOW = dt.datetime.now(dt.UTC)
MODULES = sorted(pathlib.Path(transports.__file__).parent.glob("*.py"))


class Socket(asyncio.Transport):
    """A socket whose client reads when the test says so."""

    def __init__(self):
        super().__init__()
        self.sent, self.state, self.reading, self.protocol = bytearray(), "open", True, None

    def get_protocol(self):
        return self.protocol

    def set_protocol(self, protocol):
        self.protocol = protocol

    def is_closing(self):
        return self.state != "open"

    def write_eof(self):
        self.state = "half-closed"

    def write(self, data):
        self.sent += data

    def close(self):
        self.state = "closed"

    def abort(self):
        self.state = "aborted"

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True


class Application(asyncio.Protocol):
    """Stores what reaches it."""

    def __init__(self):
        self.transport, self.received, self.pauses_after = None, [], None
        self.calls = []

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.received.append(data)
        if len(self.received) == self.pauses_after:
            self.transport.pause_reading()

    def connection_lost(self, _exc):
        self.calls.append("lost")

    def pause_writing(self):
        self.calls.append("pause")

    def resume_writing(self):
        self.calls.append("resume")


class Pair:
    """A client in memory and the server's side of its connection."""

    def __init__(self, authority, context):
        self.socket, self.application = Socket(), Application()
        self.server = transports.Tls(self.application, context)
        self.server.connection_made(self.socket)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = ssl.create_default_context(cadata=authority.pem).wrap_bio(
            self._in, self._out, server_hostname="localhost"
        )

    def deliver(self, data):
        """Give the server bytes of the socket."""
        while data and self.socket.state == "open":
            buffer = self.server.get_buffer(-1)
            size = min(len(buffer), len(data))
            buffer[:size], data = data[:size], data[size:]
            self.server.buffer_updated(size)

    def exchange(self):
        """Move what both sides have sent."""
        self.deliver(self._out.read())
        self._in.write(bytes(self.socket.sent))
        self.socket.sent.clear()

    def shake_hands(self):
        while True:
            try:
                self.client.do_handshake()
            except ssl.SSLWantReadError:
                self.exchange()
            else:
                self.exchange()
                return self

    def send(self, data):
        self.client.write(data)
        self.exchange()

    def read(self):
        self.exchange()
        pieces = []
        while True:
            try:
                pieces.append(self.client.read(1 << 16))
            except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
                break
            if not pieces[-1]:
                break
        return b"".join(pieces)


@pytest.fixture(scope="module")
def authority():
    return certificates.authority(None, "replica", NOW)


@pytest.fixture
def pair(authority):
    return Pair(authority, certificates.server_context(authority, ["localhost"], NOW))


async def test_what_is_sent_arrives_in_both_directions(pair):
    pair.shake_hands().send(b"request" * 100_000)
    assert b"".join(pair.application.received) == b"request" * 100_000
    pair.application.transport.writelines([b"answer" * 100_000, b"."])
    assert pair.read() == b"answer" * 100_000 + b"."


async def test_a_piece_of_data_is_no_larger_than_a_record(pair):
    pair.shake_hands().send(b"x" * 1_000_000)
    assert max(map(len, pair.application.received)) <= transports.PLAIN_BYTES


async def test_the_protocol_is_connected_after_the_handshake(pair):
    assert pair.application.transport is None
    pair.shake_hands()
    assert pair.application.transport.get_extra_info("ssl_object").version() == "TLSv1.3"


async def test_a_protocol_that_pauses_gets_no_more_until_it_resumes(pair):
    pair.application.pauses_after = 1
    pair.shake_hands().send(b"x" * 10)
    assert not pair.socket.reading
    pair.send(b"y" * 10)  # the socket had read this before
    assert b"".join(pair.application.received) == b"x" * 10
    pair.application.transport.resume_reading()
    await asyncio.sleep(0)
    assert pair.socket.reading
    assert b"".join(pair.application.received) == b"x" * 10 + b"y" * 10


async def test_a_client_that_does_not_read_is_not_read(pair):
    pair.shake_hands()
    pair.server.pause_writing()
    assert not pair.socket.reading
    pair.application.transport.resume_reading()
    assert not pair.socket.reading
    pair.server.resume_writing()
    assert pair.socket.reading
    assert pair.application.calls == ["pause", "resume"]


async def test_a_handshake_without_end_is_cut(pair):
    piece = bytes([1, 1, 255, 255]) + bytes((1 << 13) - 4)  # a ClientHello that announces 128 KiB
    pair.deliver(b"\x16\x03\x01" + len(piece).to_bytes(2) + piece)
    assert pair.socket.state == "open"
    pair.deliver(b"\x16\x03\x01" + len(piece).to_bytes(2) + bytes(len(piece)))
    assert pair.socket.state == "aborted"
    assert pair.application.transport is None


async def test_a_client_that_speaks_no_tls_gets_an_alert(pair):
    pair.deliver(b"GET / HTTP/1.1\r\n\r\n")
    assert pair.socket.state == "half-closed"
    assert pair.application.transport is None


async def test_bytes_that_are_no_record_end_the_connection(pair):
    pair.shake_hands().deliver(b"no record" * 10)
    assert pair.socket.state == "aborted"


async def test_what_was_written_arrives_before_the_close(pair):
    pair.shake_hands()
    pair.application.transport.write(b"bye")
    pair.application.transport.close()
    assert pair.socket.state == "closed"
    assert pair.read() == b"bye"
    pair.application.transport.write(b"more")
    assert not pair.socket.sent


async def test_a_client_that_closes_ends_the_connection(pair):
    pair.shake_hands()
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.unwrap()
    pair.exchange()
    assert pair.socket.state == "closed"


async def test_a_connection_that_is_lost_releases_its_session(pair):
    pair.shake_hands()
    pair.server.connection_lost(None)
    assert pair.application.calls == ["lost"]
    assert (pair.server._tls, len(pair.server._buffer)) == (None, 0)
    pair.application.transport.write(b"late")
    pair.application.transport.abort()


async def test_a_connection_that_is_lost_in_its_handshake_is_reported(pair):
    pair.server.connection_lost(None)
    assert pair.application.calls == ["lost"]


def private_names(tree):
    """Return the private names that a module uses and does not define, and the inner modules that it imports."""
    nodes = list(ast.walk(tree))
    private = {node for node in nodes if isinstance(node, ast.Attribute) and node.attr.startswith("_")}
    private = {node for node in private if not node.attr.endswith("__")}
    own = {node.attr for node in private if ast.unparse(node.value) == "self" and isinstance(node.ctx, ast.Store)}
    own |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    foreign = {ast.unparse(node) for node in private if ast.unparse(node.value) != "self" or node.attr not in own}
    imported = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    return foreign | {name for name in imported if name.startswith(("_", "asyncio.", "ssl."))}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_only_public_names_of_the_standard_library_are_used_because_others_change_with_each_python(module):
    assert private_names(ast.parse(module.read_text())) == set()


@pytest.mark.parametrize(
    "source", ["import asyncio.sslproto", "from asyncio.sslproto import SSLProtocol", "transport._sock", "self._extra"]
)
def test_a_private_name_of_the_standard_library_is_found(source):
    assert private_names(ast.parse(source))
