"""The progress endpoint's certificate, signed by an authority of this replica, and all authorities that tasks trust.

The authority exists as long as the pod: its key is in a folder in the pod's memory, so that tasks trust a restarted
container. Each replica adds the certificate of its own to one ConfigMap. The leader copies all of them to the
namespaces with jobs, so that tasks trust the standby before it becomes the leader.
"""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import functools
import ipaddress
import os
import pathlib
import ssl
import tempfile
from collections.abc import Callable, Mapping, Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from boathouse import failpoints
from boathouse.cluster import client, errors, retries, server_time
from boathouse.resources import names
from boathouse.services.own_objects import CONFIG_MAPS, config_map
from boathouse.telemetry import logs

LIFETIME = dt.timedelta(days=365)
RENEWAL = dt.timedelta(days=30)
_SKEW = dt.timedelta(days=1)
"""Certificates are valid from this long before they are made, for nodes whose clock is behind."""
_KEY, _CERTIFICATE = "ca.key", "ca.crt"
_USES = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
_log = logs.get(__name__)
_NAME = names.PROGRESS_CA_CONFIG_MAP
MAX_AUTHORITIES = 8
REPUBLISH_S = 20.0


@dataclasses.dataclass(frozen=True, slots=True)
class Authority:
    """Certificate authority of one replica."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> str:
        """Certificate that tasks trust."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()


def authority(folder: pathlib.Path | None, replica: str, now: dt.datetime) -> Authority:
    """Return the authority in `folder`, or a new one, which is saved there if the folder is writable."""
    if folder is not None:
        with contextlib.suppress(OSError, ValueError):
            kept = _load(folder)
            if kept.certificate.not_valid_after_utc - now > LIFETIME / 2:
                return kept
    made = _make(replica, now)
    if folder is not None and folder.is_dir() and os.access(folder, os.W_OK):
        _save(folder, made)
    return made


def expiry_probe(signer: Authority) -> Callable[[], str | None]:
    """Return a liveness probe that fails before the authority expires; the restarted process creates a new one."""
    until = signer.certificate.not_valid_after_utc - RENEWAL
    problem = f"the certificate authority expires in less than {RENEWAL.days} days"
    return lambda: None if server_time.SERVER_TIME.now() < until else problem


def server_context(signer: Authority, hosts: Sequence[str], now: dt.datetime) -> ssl.SSLContext:
    """Return a server's TLS context with a fresh certificate for the host names and IP addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder("boathouse-progress", signer.certificate.subject, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key()), critical=False)
        .sign(signer.key, hashes.SHA256())
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.NamedTemporaryFile() as file:  # the ssl module reads keys only from files
        file.write(_pem(key) + certificate.public_bytes(serialization.Encoding.PEM))
        file.flush()
        context.load_cert_chain(file.name)
    return context


def _make(replica: str, now: dt.datetime) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"boathouse {replica}"[:64])])
    other_uses = dict.fromkeys((*_USES, "encipher_only", "decipher_only"), False)
    usage = x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **other_uses)
    certificate = (
        _builder(f"boathouse {replica}"[:64], name, key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(key, certificate)


def _builder(
    subject: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + LIFETIME)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    kind, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, kind, encryption)


def _load(folder: pathlib.Path) -> Authority:
    key = serialization.load_pem_private_key((folder / _KEY).read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the saved key has another type")  # noqa: TRY004 - a file's content, not an argument's type
    certificate = x509.load_pem_x509_certificate((folder / _CERTIFICATE).read_bytes())
    if certificate.public_key() != key.public_key():
        raise ValueError("the saved key does not match the certificate")
    return Authority(key, certificate)


def _save(folder: pathlib.Path, made: Authority) -> None:
    descriptor = os.open(folder / _KEY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(_pem(made.key))
    (folder / _CERTIFICATE).write_text(made.pem)


class Bundles:
    """Maintains `boathouse-progress-ca` in the operator's namespace, by this pod's name, and in those with jobs."""

    def __init__(self, api: client.ApiClient, *, namespace: str, replica: str, now: Callable[[], dt.datetime]) -> None:
        self._api, self._namespace, self._replica, self._now = api, namespace, replica, now
        self._pem = self._bundle = ""
        self._published: dict[str, str] = {}  # by namespace; "" while it is published for the first time
        self._publishing = asyncio.Lock()  # of two concurrent writes to a namespace, the older bundle might arrive last

    async def add(self, pem: str) -> None:
        """Publish this replica's authority, and drop expired and surplus ones."""
        self._pem = pem
        await retries.retrying(self.republish, idempotent=True, conflicts=True)

    async def republish(self) -> None:
        """Publish this replica's authority if it is missing, on a standby too; raises `errors.ClusterError`."""
        key = f"{self._replica}.crt"
        try:
            published = await self._api.get(CONFIG_MAPS, _NAME, self._namespace)
        except errors.NotFound:
            made = config_map(_NAME, self._namespace, {"data": {key: self._pem}})
            await self._api.create(CONFIG_MAPS, made, self._namespace)
            return
        data = _pruned((published.get("data") or {}) | {key: self._pem}, key, self._now())
        if data != published.get("data"):
            await self._api.replace(CONFIG_MAPS, _NAME, published | {"data": data}, self._namespace)

    async def refresh(self) -> None:
        """Read the replicas' authorities, and update the namespaces with jobs. Errors of a namespace are logged."""
        await self._read()
        for namespace in [namespace for namespace, bundle in self._published.items() if bundle]:
            try:
                await self._restore(namespace)
            except Exception as error:  # noqa: BLE001 - an error of one namespace must not affect the others
                _log.warning("the authorities could not be published", namespace=namespace, error=str(error))

    async def ensure(self, namespace: str) -> None:
        """Publish the bundle in a namespace unless it is there, before tasks start."""
        if not self._bundle:
            await self._read()
        if self._published.get(namespace) == self._bundle:
            return
        async with self._publishing:
            if self._published.get(namespace) != self._bundle:
                self._published.setdefault(namespace, "")
                await self._publish(namespace)

    async def _read(self) -> None:
        try:
            published = await self._api.get(CONFIG_MAPS, _NAME, self._namespace)
        except errors.NotFound:  # the ConfigMap was deleted; each replica publishes its own authority again
            await self.republish()
            published = await self._api.get(CONFIG_MAPS, _NAME, self._namespace)
        data = published.get("data") or {}
        self._bundle = "".join(pem for key, pem in sorted(data.items()) if key != names.PROGRESS_CA_KEY)

    async def _restore(self, namespace: str) -> None:
        """Publish the bundle if it is missing or was edited, as users who may edit the namespace can do."""
        async with self._publishing:
            try:
                published = await self._api.get(CONFIG_MAPS, _NAME, namespace)
            except errors.NotFound:
                published = {}
            if namespace not in self._published:  # its last job went meanwhile
                return
            if (published.get("data") or {}).get(names.PROGRESS_CA_KEY) == self._bundle:
                self._published[namespace] = self._bundle
                return
            await self._publish(namespace)

    async def _publish(self, namespace: str) -> None:
        bundle = self._bundle
        manifest = config_map(_NAME, namespace, {"data": {names.PROGRESS_CA_KEY: bundle}})
        apply = functools.partial(
            self._api.patch, CONFIG_MAPS, _NAME, manifest, namespace, style=client.PatchStyle.APPLY, force=True
        )
        failpoints.hit("before-progress.ca")
        try:
            await apply()
        except errors.NotFound:  # the namespace was deleted
            self._published.pop(namespace, None)
            return
        except errors.Invalid:  # the ConfigMap was made immutable
            await self._api.delete(CONFIG_MAPS, _NAME, namespace)
            await apply()
        failpoints.hit("after-progress.ca")
        if namespace in self._published:  # else its last job went meanwhile
            self._published[namespace] = bundle

    def forget(self, namespace: str) -> None:
        """Publish the bundle again when it is needed next, because the namespace may have been recreated."""
        self._published.pop(namespace, None)


def _pruned(authorities: Mapping[str, str], own: str, now: dt.datetime) -> dict[str, str]:
    dated: list[tuple[bool, dt.datetime, str]] = []
    for key in authorities.keys() - {names.PROGRESS_CA_KEY}:  # the bundle for jobs in the operator's namespace
        with contextlib.suppress(ValueError):
            certificate = x509.load_pem_x509_certificate(authorities[key].encode())
            if certificate.not_valid_after_utc > now:
                dated.append((key == own, certificate.not_valid_before_utc, key))
    kept = {key: authorities[key] for _, _, key in sorted(dated, reverse=True)[:MAX_AUTHORITIES]}
    own_bundle = authorities.get(names.PROGRESS_CA_KEY)
    return kept | ({names.PROGRESS_CA_KEY: own_bundle} if own_bundle else {})
