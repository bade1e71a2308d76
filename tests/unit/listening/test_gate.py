"""What reaches the HTTP server of what a client sends, in whatever pieces it arrives."""

import asyncio

import pytest

from boathouse.listening import gate
from boathouse.listening.connections import Refusal
from boathouse.listening.gate import Gate

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"


class Server(asyncio.Protocol):
    """Stores what reaches it."""

    def __init__(self):
        self.transport, self.received, self.lost = None, b"", False

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.received += data

    def connection_lost(self, _exc):
        self.lost = True


class Socket(asyncio.Transport):
    """Stores what is written to it."""

    def __init__(self):
        super().__init__()
        self.written, self.closed, self.reading, self.protocol = b"", False, True, None

    def get_protocol(self):
        return self.protocol

    def set_protocol(self, protocol):
        self.protocol = protocol

    def write(self, data):
        self.written += data

    def close(self):
        self.closed = True

    write_eof = close

    def is_closing(self):
        return self.closed

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True


class Connected:
    """A gate with a socket and a server."""

    def __init__(self):
        self.server, self.socket, self.told = Server(), Socket(), []
        self.gate = Gate(
            self.server,
            began=lambda: self.told.append("began"),
            refused=self.told.append,
            ended=lambda: self.told.append("ended"),
        )
        self.socket.protocol = self.gate
        self.gate.connection_made(self.socket)

    def send(self, data, *, piece=1 << 20):
        for start in range(0, len(data), piece):
            self.gate.data_received(data[start : start + piece])


@pytest.fixture
def connected():
    return Connected()


@pytest.mark.parametrize("piece", [1, 3, 7, 1000])
@pytest.mark.parametrize("request_", [GET, POST])
def test_the_server_gets_one_request_in_whatever_pieces_it_arrives(connected, request_, piece):
    connected.send(request_ + GET * 3, piece=piece)
    assert connected.server.received == request_
    assert connected.told == ["began"]


def test_the_server_is_not_connected_before_the_head_is_complete(connected):
    connected.send(GET[:-1])
    assert connected.server.transport is None
    connected.send(GET[-1:])
    assert connected.server.transport is not None


def test_what_follows_a_request_is_not_read(connected):
    connected.send(POST)
    assert connected.socket.reading
    connected.send(b"x")
    assert not connected.socket.reading


@pytest.mark.parametrize("piece", [10, 8192, 1 << 20])
async def test_of_a_head_without_end_no_more_than_the_maximum_is_held(connected, piece):
    connected.send(b"GET / HTTP/1.1\r\nX: " + b"x" * (1 << 20), piece=piece)
    assert connected.told == [Refusal.TOO_LARGE_HEAD]
    assert connected.socket.written.startswith(b"HTTP/1.1 431 ")
    assert connected.socket.closed
    assert len(connected.gate._head) == 0


async def test_a_head_of_the_maximum_is_accepted_and_one_of_a_byte_more_is_not():
    empty = len(b"GET / HTTP/1.1\r\nX: \r\n\r\n")
    for more, told in ((0, "began"), (1, Refusal.TOO_LARGE_HEAD)):
        connected = Connected()
        value = b"x" * (gate.MAX_BYTES - empty + more)
        connected.send(b"GET / HTTP/1.1\r\nX: " + value + b"\r\n\r\n", piece=1000)
        assert connected.told == [told]


async def test_a_refused_request_does_not_reach_the_server(connected):
    connected.send(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    assert (connected.server.transport, connected.told) == (None, [Refusal.MALFORMED])
    assert connected.socket.written.startswith(b"HTTP/1.1 411 ")


def test_the_server_is_told_of_the_end_of_a_connection_that_it_has(connected):
    connected.gate.connection_lost(None)
    assert (connected.server.lost, connected.told) == (False, ["ended"])
    other = Connected()
    other.send(GET)
    other.gate.connection_lost(None)
    assert (other.server.lost, other.told) == (True, ["began", "ended"])
