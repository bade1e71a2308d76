from __future__ import annotations

import base64

import pytest
import yaml

from boathouse.cluster import config
from boathouse.cluster.errors import ConfigError


def kubeconfig(folder, *, user=None, cluster=None, **top):
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "demo"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://host:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": {"token": "secret"} if user is None else user}],
        **top,
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_kubeconfig_with_a_token(tmp_path):
    found = config.from_kubeconfig(kubeconfig(tmp_path))
    assert (found.server, found.token, found.namespace) == ("https://host:6443", "secret", "demo")


def test_a_kubeconfig_with_files_beside_it(tmp_path):
    (tmp_path / "ca.crt").write_text("CA")
    (tmp_path / "crt").write_text("CRT")
    user = {"client-certificate": "crt", "client-key-data": base64.b64encode(b"KEY").decode()}
    found = config.from_kubeconfig(kubeconfig(tmp_path, user=user, cluster={"certificate-authority": "ca.crt"}))
    assert (found.ca_pem, found.client_pem) == ("CA", "CRT\nKEY")


def test_secrets_do_not_show_in_logs(tmp_path):
    assert "secret" not in repr(config.from_kubeconfig(kubeconfig(tmp_path)))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param({"cluster": {"insecure-skip-tls-verify": True}}, "certificate-authority", id="unverified TLS"),
        pytest.param({"user": {"exec": {"command": "aws"}}}, "exec", id="exec plugin"),
        pytest.param({"user": {"username": "u", "password": "p"}}, "username", id="password"),
        pytest.param({"current-context": "there"}, "no context 'there'; it has: here", id="no such context"),
        pytest.param({"user": {"tokenFile": "t", "client-certificate": "absent"}}, "absent", id="no such file"),
    ],
)
def test_what_we_do_not_do_is_refused_with_a_reason(tmp_path, options, says):
    with pytest.raises(ConfigError, match=says):
        config.from_kubeconfig(kubeconfig(tmp_path, **options))


def test_a_pod_uses_its_service_account(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    for name, text in {"ca.crt": "CA", "namespace": "ours\n", "token": "t"}.items():
        (tmp_path / name).write_text(text)
    found = config.in_cluster(tmp_path)
    assert (found.server, found.namespace, found.token_file) == ("https://[fd00::1]:443", "ours", tmp_path / "token")


def test_outside_of_everything_it_says_what_to_set(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with pytest.raises(ConfigError, match="set KUBECONFIG"):
        config.load()


def test_a_ca_that_is_none_is_named():
    with pytest.raises(ConfigError, match="https://host"):
        config.ClusterConfig(server="https://host", ca_pem="no PEM").ssl_context()
