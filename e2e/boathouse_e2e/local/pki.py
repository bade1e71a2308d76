"""The cluster's certificate authority, and the kubeconfig files that it signs for."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import json
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_VALID = dt.timedelta(days=365)
_SKEW = dt.timedelta(hours=1)


def _write_private(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def write_signing_key(folder: Path, name: str) -> None:
    """Write a bare key pair, `NAME.key` and `NAME.pub`, as the API server signs service account tokens with."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    _write_private(folder / f"{name}.key", _pem(key))
    (folder / f"{name}.pub").write_bytes(public)


class Authority:
    """A certificate authority, kept as `NAME.crt` and `NAME.key` in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = folder / f"{name}.crt"
        builder = self._builder(self._subject, self._key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        _write_private(folder / f"{name}.key", _pem(self._key))
        self.certificate.write_bytes(self._signed(builder))

    def issue(
        self, name: str, common_name: str, *, organizations: Sequence[str] = (), hosts: Sequence[str] = ()
    ) -> tuple[Path, Path]:
        """Issue a certificate for a client, and for a server where `hosts` (names and addresses) are given.

        Returns:
            The files of the certificate and of its key.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, value) for value in organizations]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        builder = self._builder(subject, key).add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName(list(map(_general_name, hosts))), critical=False
            )
        certificate_file, key_file = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        certificate_file.write_bytes(self._signed(builder))
        _write_private(key_file, _pem(key))
        return certificate_file, key_file

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SKEW)
            .not_valid_after(now + _VALID)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )

    def _signed(self, builder: x509.CertificateBuilder) -> bytes:
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def write_kubeconfig(path: Path, *, cluster: str, server: str, authority: Path, user: tuple[Path, Path]) -> None:
    """Write a kubeconfig file (as JSON, which is YAML) that carries its certificates within itself."""

    def encoded(file: Path) -> str:
        return base64.b64encode(file.read_bytes()).decode()

    certificate, key = user
    credentials = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": cluster, "cluster": {"server": server, "certificate-authority-data": encoded(authority)}}
        ],
        "users": [{"name": cluster, "user": credentials}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
        "current-context": cluster,
    }
    _write_private(path, json.dumps(config, indent=1).encode())
