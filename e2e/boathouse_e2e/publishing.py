"""Push the files of a release to an OCI registry, sign them, attest SBOM and provenance, and verify the result."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from boathouse_e2e import tools, waiting
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.shell import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_LOOPBACK: Final = "127.0.0.1"
_ISSUER: Final = "https://token.actions.githubusercontent.com"
_SPDX, _SLSA = "spdxjson", "slsaprovenance1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """Who signs.

    Attributes:
        sign: cosign's options for signing.
        verify: cosign's options that accept this signer and no other.
        provenance: the SLSA predicate of what is signed.
    """

    sign: tuple[str, ...]
    verify: tuple[str, ...]
    provenance: Mapping[str, Any]


def short_name(image: str) -> str:
    """Return the name of an image without registry and tag: `boathouse-task` of `localhost/boathouse-task:dev`."""
    return image.rpartition("/")[2].partition(":")[0]


def workflow_identity(environment: Mapping[str, str]) -> Signer:
    """Return the identity of the hosted workflow that runs this, whose certificates need no key.

    Raises:
        ClusterError: No workflow runs this.
    """
    missing = [name for name in ("GITHUB_REPOSITORY", "GITHUB_WORKFLOW_REF") if not environment.get(name)]
    if missing:
        raise ClusterError(f"{' and '.join(missing)} not set: only the release workflow signs; use DRY_RUN=1 elsewhere")
    identity = f"https://github.com/{environment['GITHUB_WORKFLOW_REF']}"
    return Signer(
        sign=("--yes",),
        verify=("--certificate-identity", identity, "--certificate-oidc-issuer", _ISSUER),
        provenance=provenance(environment),
    )


def throw_away_key(folder: Path) -> Signer:
    """Return a signer with a new key, which ends with the folder; nothing is written to a transparency log."""
    cosign = tools.ensure(["cosign"])["cosign"]
    run(cosign, "generate-key-pair", cwd=folder, env={**os.environ, "COSIGN_PASSWORD": ""})
    return Signer(
        sign=("--yes", "--key", str(folder / "cosign.key"), "--use-signing-config=false", "--tlog-upload=false"),
        verify=("--key", str(folder / "cosign.pub"), "--insecure-ignore-tlog"),
        provenance=provenance({}),
    )


def provenance(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the SLSA v1 predicate of a build by a hosted workflow; one that names no workflow for a dry run."""
    source = f"https://github.com/{environment['GITHUB_REPOSITORY']}" if "GITHUB_REPOSITORY" in environment else ""
    workflow = environment.get("GITHUB_WORKFLOW_REF", "")
    run_id, attempt = environment.get("GITHUB_RUN_ID", ""), environment.get("GITHUB_RUN_ATTEMPT", "1")
    source_of = {"uri": f"git+{source}@{environment.get('GITHUB_REF', '')}"}
    commit = {"digest": {"gitCommit": environment.get("GITHUB_SHA", "")}}
    return {
        "buildDefinition": {
            "buildType": "https://actions.github.io/buildtypes/workflow/v1",
            "externalParameters": {"workflow": {"ref": environment.get("GITHUB_REF", ""), "repository": source}},
            "resolvedDependencies": [{**source_of, **commit}] if source else [],
        },
        "runDetails": {
            "builder": {"id": f"https://github.com/{workflow}" if workflow else "urn:boathouse:dry-run"},
            "metadata": {"invocationId": f"{source}/actions/runs/{run_id}/attempts/{attempt}" if run_id else ""},
        },
    }


@contextlib.contextmanager
def throw_away_registry(folder: Path) -> Iterator[str]:
    """Run an OCI registry on the loopback interface and yield its address."""
    crane = tools.ensure(["crane"])["crane"]
    with socket.create_server((_LOOPBACK, 0)) as free:
        address = f"{_LOOPBACK}:{free.getsockname()[1]}"
    (folder / "registry").mkdir()
    command = [str(crane), "registry", "serve", "--address", address, "--disk", str(folder / "registry")]
    with (folder / "registry.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            waiting.until(lambda: _listens(address), f"the registry listens on {address}", within_s=30)
            yield address
        finally:
            server.terminate()
            server.wait()


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
        return True
    return False


def publish(output: Path, version: str, registry: str, signer: Signer) -> None:
    """Publish the images of all architectures and the chart of a folder of `boathouse_e2e.release`.

    Raises:
        ClusterError: A push, a signature or a verification failed.
    """
    publisher = _Publisher(version=version, registry=registry, signer=signer, output=output)
    archives = sorted((output / "images").glob("*/*.tar"))
    if not archives:
        raise ClusterError(f"no images in {output}: run `make release-images`")
    for name in sorted({archive.stem for archive in archives}):
        publisher.image(name, [archive for archive in archives if archive.stem == name])
    publisher.chart()
    for pattern in ("python/*.whl", "python/*.tar.gz", "chart/*.tgz"):
        for path in sorted(output.glob(pattern)):
            publisher.file(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Publisher:
    version: str
    registry: str
    signer: Signer
    output: Path

    def image(self, name: str, archives: list[Path]) -> None:
        """Push an image of each architecture, then the index that holds them, with signatures and attestations."""
        crane = self._tool("crane")
        tag = f"{self.registry}/{name}:{self.version}"
        members = []
        for archive in archives:
            pushed = run(crane, "push", archive, f"{tag}-{archive.parent.name}").strip()
            members.append(pushed)
            self._attest(pushed, _SPDX, archive.with_suffix(".spdx.json"))
            self._attest(pushed, _SLSA, self._provenance())
        appended = [word for member in members for word in ("--manifest", member)]
        index = run(crane, "index", "append", *appended, "--tag", tag).strip().splitlines()[-1]
        self._attest(index, _SLSA, self._provenance())
        self._sign(index, "--recursive")
        for member in members:
            self._verify(member)
        print(f"  {index}: {', '.join(archive.parent.name for archive in archives)}", flush=True)

    def chart(self) -> None:
        """Push and sign the packaged chart."""
        package = self.output / "chart" / f"boathouse-{self.version}.tgz"
        plain = ("--plain-http",) if self.registry.startswith(_LOOPBACK) else ()
        run(self._tool("helm"), "push", package, f"oci://{self.registry}/charts", *plain)
        digest = run(self._tool("crane"), "digest", f"{self.registry}/charts/boathouse:{self.version}").strip()
        self._sign(f"{self.registry}/charts/boathouse@{digest}")
        print(f"  {self.registry}/charts/boathouse@{digest}", flush=True)

    def file(self, path: Path) -> None:
        """Sign a file: the signature is beside it, in a Sigstore bundle."""
        bundle = path.with_name(f"{path.name}.sigstore.json")
        run(self._tool("cosign"), "sign-blob", *self.signer.sign, "--bundle", bundle, path, env=self._environment())
        run(self._tool("cosign"), "verify-blob", *self.signer.verify, "--bundle", bundle, path)
        print(f"  {bundle.relative_to(self.output)}", flush=True)

    def _sign(self, reference: str, *options: str) -> None:
        cosign = self._tool("cosign")
        run(cosign, "sign", *self.signer.sign, *options, reference, env=self._environment())
        self._verify(reference)

    def _verify(self, reference: str) -> None:
        run(self._tool("cosign"), "verify", *self.signer.verify, reference)

    def _attest(self, reference: str, kind: str, predicate: Path) -> None:
        cosign = self._tool("cosign")
        predicates = ("--type", kind, "--predicate", predicate)
        run(cosign, "attest", *self.signer.sign, *predicates, reference, env=self._environment())
        run(cosign, "verify-attestation", *self.signer.verify, "--type", kind, reference)

    def _provenance(self) -> Path:
        path = self.output / "provenance.json"
        path.write_text(json.dumps(self.signer.provenance))
        return path

    @staticmethod
    def _tool(name: str) -> Path:
        return tools.ensure([name])[name]

    @staticmethod
    def _environment() -> dict[str, str]:
        return {"COSIGN_PASSWORD": "", **os.environ}
