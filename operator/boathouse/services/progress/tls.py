"""Create the progress endpoint's certificate, signed by a certificate authority of this replica.

The authority exists as long as the pod: its key is in a folder in the pod's memory, so that tasks trust a restarted
container. The cluster stores only the authority's certificate.
"""

import contextlib
import dataclasses
import datetime as dt
import ipaddress
import os
import pathlib
import ssl
import tempfile
from collections.abc import Callable, Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from boathouse.cluster import server_time

LIFETIME = dt.timedelta(days=365)
RENEWAL = dt.timedelta(days=30)
_SKEW = dt.timedelta(days=1)
"""Certificates are valid from this long before they are made, for nodes whose clock is behind."""
"""Tolerance for nodes whose clocks are behind."""
_KEY, _CERTIFICATE = "ca.key", "ca.crt"


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

    def probe() -> str | None:
        return (
            None
            if server_time.SERVER_TIME.now() < until
            else f"the certificate authority expires in less than {RENEWAL.days} days"
        )

    return probe


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
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
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
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


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
