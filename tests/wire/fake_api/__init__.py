"""A Kubernetes API server in this process: objects in memory, LIST and WATCH as the real one's, faults on order.

    async with fake_api.FakeApi() as api:
        api.add(manifests.node("n1", cpu="4"))
        api.add(manifests.pod("p", cpu="500m"))
        api.fail_next("create pods/binding", status=500, after_commit=True)
        async with api.client() as client: ...
        assert api.get("pods", "demo/p")["spec"]["nodeName"] == "n1"

Calls are named as RBAC does: `VERB PLURAL[/SUBRESOURCE]`; verbs are get, list, watch, create, update, patch, delete.
"""

from tests.wire.fake_api.faults import Fault
from tests.wire.fake_api.server import Call, FakeApi
from tests.wire.fake_api.tokens import token, token_user
from tests.wire.fake_api.world import Refused, World

__all__ = ["Call", "FakeApi", "Fault", "Refused", "World", "token", "token_user"]
