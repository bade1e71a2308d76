"""Tokens of pods, and what a TokenReview says of them."""

from __future__ import annotations

import base64
import json
from typing import Any

FOR_EVER_S = 4_000_000_000


def token(manifest: dict[str, Any], audience: str, *, signature: str = "genuine", **claims: Any) -> str:
    """Return a token projected into that pod; only the fake API server knows which signature is right."""
    metadata = manifest["metadata"]
    said = {
        "iss": "https://kubernetes.default.svc.cluster.local",
        "aud": [audience],
        "exp": FOR_EVER_S,
        "kubernetes.io": {
            "namespace": metadata["namespace"],
            "pod": {"name": metadata["name"], "uid": metadata["uid"]},
            "serviceaccount": {"name": "default", "uid": "uid-of-the-account"},
        },
    }
    parts = ({"alg": "RS256", "kid": "k"}, said | claims)
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, signature])


def token_user(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return what a TokenReview says of the token projected into that pod."""
    metadata = manifest["metadata"]
    return {
        "username": f"system:serviceaccount:{metadata['namespace']}:default",
        "uid": "uid-of-the-account",
        "groups": ["system:serviceaccounts", "system:authenticated"],
        "extra": {
            "authentication.kubernetes.io/pod-name": [metadata["name"]],
            "authentication.kubernetes.io/pod-uid": [metadata["uid"]],
        },
    }
