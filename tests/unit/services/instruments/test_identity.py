"""The token that kubelets get."""

import pytest

from boathouse.cluster import errors
from boathouse.services.instruments import kubelet_client


class TokenServer:
    """Creates numbered tokens, or fails."""

    def __init__(self):
        self.created, self.error = [], None

    async def create_token(self, *request):
        if self.error is not None:
            raise self.error
        self.created.append(request)
        return f"token-{len(self.created)}"


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def server():
    return TokenServer()


@pytest.fixture
def token(server, clock):
    return kubelet_client.MetricsToken(server, "boathouse-system", lambda: clock[0])


async def test_a_token_of_its_own_account_is_used_until_it_is_renewed(server, token, clock):
    assert [await token.current(), await token.current()] == ["token-1", "token-1"]
    assert server.created == [("boathouse-system", "boathouse-signals", 3600)]
    clock[0] += 0.8 * 3600
    assert await token.current() == "token-2"


async def test_a_token_that_cannot_be_renewed_is_used_while_it_is_valid(server, token, clock):
    await token.current()
    server.error = errors.ConnectionLost("gone")
    clock[0] += 3000
    assert await token.current() == "token-1"
    clock[0] += 601
    with pytest.raises(errors.ConnectionLost):
        await token.current()


async def test_a_token_that_kubelets_refuse_is_renewed_once_a_minute(token, clock):
    await token.current()
    for _ in range(100):
        token.reject()
    assert await token.current() == "token-1"
    clock[0] += 60
    assert await token.current() == "token-2"
