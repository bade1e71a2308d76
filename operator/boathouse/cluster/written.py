# ruff: noqa: D101 - the names are Kubernetes' own
"""Models of what the operator writes and reads again: leases, references in events, and the answers about tokens."""

from msgspec import Struct, field

from boathouse.cluster import server_time, wire


def micro_time() -> str:
    """Return the server's time as a `metav1.MicroTime`, which must have exactly six decimals of the second."""
    return server_time.SERVER_TIME.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class WrittenObject(Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """A part of a written object; fields with their default value are omitted."""


class WrittenMeta(WrittenObject, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class LeaseSpec(WrittenObject, frozen=True, kw_only=True):
    """`spec` of a Lease. `renew_time` is only informational; the operator does not read it."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int = 0


class Lease(WrittenObject, frozen=True, kw_only=True, tag_field="kind", tag="Lease"):
    api_version: str
    metadata: WrittenMeta
    spec: LeaseSpec = LeaseSpec()


class ObjectReference(WrittenObject, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""


class UserInfo(wire.View, frozen=True, kw_only=True):
    """User of a token; `extra` has the pod of a projected token."""

    username: str = ""
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def pod_name(self) -> str:
        """Name of the pod that the token was projected into, or empty."""
        return self._of_pod("name")

    @property
    def pod_uid(self) -> str:
        """UID of that pod, or empty."""
        return self._of_pod("uid")

    def _of_pod(self, what: str) -> str:
        return next(iter(self.extra.get(f"authentication.kubernetes.io/pod-{what}", ())), "")


class TokenReviewStatus(wire.View, frozen=True, kw_only=True):
    """Result of a token review; `audiences` are the requested ones that the token has."""

    authenticated: bool = False
    user: UserInfo = UserInfo()
    audiences: tuple[str, ...] = ()


class TokenReview(wire.View, frozen=True, kw_only=True):
    status: TokenReviewStatus = TokenReviewStatus()
