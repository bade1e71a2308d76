from __future__ import annotations

import base64
import json
import time

import pytest
import yaml

from boathouse.cluster import config
from boathouse.cluster.errors import ConfigError
from boathouse.cluster.kubeconfig import ExecPlugin


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


# What a user's kubectl takes


@pytest.fixture(autouse=True)
def outside_of_pods(monkeypatch, tmp_path):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def of_user(folder, **options):
    return config.of_user(kubeconfig(folder, **options))


def test_a_user_may_disable_verification_use_a_proxy_and_name_the_certificate(tmp_path):
    cluster = {"insecure-skip-tls-verify": True, "proxy-url": "socks5://p:1080", "tls-server-name": "api"}
    found = of_user(tmp_path, cluster=cluster)
    assert (found.is_verified, found.proxy_url, found.tls_server_name) == (False, "socks5h://p:1080", "api")


def test_a_server_without_a_scheme_speaks_tls(tmp_path):
    assert of_user(tmp_path, cluster={"server": "host:6443"}).server == "https://host:6443"


@pytest.mark.parametrize(
    ("user", "headers"),
    [
        pytest.param({"username": "u", "password": "p"}, ("Authorization: Basic dTpw",), id="password"),
        pytest.param(
            {"token": "t", "as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"S/X": ["1"]}},
            (
                "Impersonate-User: jane",
                "Impersonate-Uid: 7",
                "Impersonate-Group: a",
                "Impersonate-Group: b",
                "Impersonate-Extra-s%2Fx: 1",
            ),
            id="somebody else",
        ),
        pytest.param({}, (), id="anonymous"),
    ],
)
def test_headers_of_a_user(tmp_path, user, headers):
    assert of_user(tmp_path, user=user).headers == headers


def test_of_several_files_the_first_with_a_name_counts_and_paths_are_relative_to_their_file(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "ca.crt").write_text(f"CA of {folder.name}")
    ca = {"certificate-authority": "ca.crt"}
    one = kubeconfig(first, clusters=[{"name": "other", "cluster": {"server": "https://other", **ca}}], users=None)
    two = kubeconfig(second, cluster=ca, user={"tokenFile": "token"}, **{"current-context": "elsewhere"})
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/absent:{one}:{two}")
    found = config.of_user()
    assert (found.server, found.ca_pem) == ("https://host:6443", "CA of second")
    assert found.token_file == second / "token"


def test_the_file_in_the_home_folder_is_the_default(tmp_path):
    (tmp_path / "home/.kube").mkdir(parents=True)
    kubeconfig(tmp_path / "home/.kube").rename(tmp_path / "home/.kube/config")
    assert config.of_user().server == "https://host:6443"


def test_a_command_in_a_pod_uses_the_service_account_if_there_is_no_kubeconfig(monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        config.of_user()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param({"current-context": "there"}, "no context 'there'; it has: here", id="no such context"),
        pytest.param({"contexts": [{"name": "here", "context": {"cluster": "x"}}]}, "no cluster 'x'", id="no cluster"),
        pytest.param({"cluster": {"server": ""}}, "has no server", id="no server"),
        pytest.param({"contexts": ["here"]}, "it has: none", id="entries that are no mappings"),
        pytest.param({"user": {"auth-provider": {"name": "gcp"}}}, "gke-gcloud-auth-plugin", id="removed provider"),
        pytest.param({"user": {"exec": {"command": "aws"}}}, "apiVersion", id="plugin without a version"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_says_why(tmp_path, options, says):
    with pytest.raises(ConfigError, match=says):
        of_user(tmp_path, **options)


def test_without_any_kubeconfig_the_file_that_is_missing_is_named(monkeypatch):
    with pytest.raises(ConfigError, match=r"~/\.kube/config does not exist"):
        config.of_user()
    monkeypatch.setenv("KUBECONFIG", "/absent")
    with pytest.raises(ConfigError, match="/absent does not exist"):
        config.of_user()


# Plugins

V1BETA1 = "client.authentication.k8s.io/v1beta1"


def script(folder, text):
    """Write a program; return its name as a kubeconfig beside it has it."""
    (folder / "login").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "login").chmod(0o700)
    return "./login"


def answer(version=V1BETA1, **status):
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


def test_a_plugin_gets_its_arguments_variables_and_the_cluster_and_its_token_is_used(tmp_path):
    made = answer(token="made", expirationTimestamp="2999-01-01T00:00:00Z")
    command = script(tmp_path, f"echo \"$1 $PROFILE $KUBERNETES_EXEC_INFO\" >{tmp_path}/got; echo '{made}'")
    plugin = {
        "apiVersion": V1BETA1,
        "command": command,
        "args": ["get-token"],
        "env": [{"name": "PROFILE", "value": "dev"}],
        "provideClusterInfo": True,
    }
    ca = base64.b64encode(b"CA").decode()
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    cluster = {"certificate-authority-data": ca, "extensions": [extension]}
    found = of_user(tmp_path, user={"exec": plugin}, cluster=cluster).plugin.run()
    assert (found.token, found.is_current(time.time())) == ("made", True)
    argument, variable, information = (tmp_path / "got").read_text().split(" ", 2)
    assert (argument, variable) == ("get-token", "dev")
    assert json.loads(information) == {
        "apiVersion": V1BETA1,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://host:6443/",
                "certificate-authority-data": ca,
                "config": {"audience": "a"},
            },
        },
    }


def test_a_token_of_the_kubeconfig_comes_before_its_plugin(tmp_path):
    user = {"token": "t", "exec": {"apiVersion": V1BETA1, "command": "absent"}}
    found = of_user(tmp_path, user=user)
    assert (found.token, found.plugin) == ("t", None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("exit 3", "failed with exit code 3: log in", id="fails"),
        pytest.param("echo secret", "printed no ExecCredential", id="no JSON"),
        pytest.param("echo '[]'", "printed no ExecCredential", id="other JSON"),
        pytest.param(f"echo '{answer()}'", "neither a token nor a certificate", id="empty"),
        pytest.param(
            f"echo '{answer('client.authentication.k8s.io/v1', token='t')}'", "in version .*/v1", id="version"
        ),
    ],
)
def test_a_plugin_without_a_credential_says_what_to_do(tmp_path, text, says):
    script(tmp_path, text)
    with pytest.raises(ConfigError, match=says) as raised:
        ExecPlugin(command=f"{tmp_path}/login", api_version=V1BETA1).run()
    assert "secret" not in str(raised.value)


def test_a_missing_plugin_is_explained_in_the_kubeconfigs_words():
    with pytest.raises(ConfigError, match=r"absent-plugin cannot be run .*: see the handbook"):
        ExecPlugin(command="absent-plugin", install_hint="see the handbook\n").run()


def test_a_plugin_that_must_ask_needs_a_terminal():
    with pytest.raises(ConfigError, match="run the command in a terminal"):
        ExecPlugin(command="true", interactive_mode="Always").run()


# kubectl's provider of OIDC


def id_token(expires_at_s):
    payload = base64.urlsafe_b64encode(json.dumps({"exp": expires_at_s}).encode()).decode().rstrip("=")
    return f"e30.{payload}.c2ln"


def oidc_user(token):
    return {"auth-provider": {"name": "oidc", "config": {"idp-issuer-url": "https://issuer", "id-token": token}}}


@pytest.fixture
def kubectl(tmp_path, monkeypatch):
    """Put a kubectl on PATH that does what it is told."""
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    (tmp_path / "bin").mkdir()

    def does(text):
        (tmp_path / "bin/kubectl").write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin/kubectl").chmod(0o700)

    return does


def test_an_id_token_is_used_until_it_expires_and_then_kubectl_renews_it(tmp_path, kubectl):
    fresh, expired = id_token(time.time() + 3600), id_token(time.time() - 1)
    assert of_user(tmp_path, user=oidc_user(fresh)).token == fresh
    kubectl(f'echo "$@" >{tmp_path}/words; sed -i s/{expired}/{fresh}/ {tmp_path}/kubeconfig')
    assert of_user(tmp_path, user=oidc_user(expired)).token == fresh
    words = (tmp_path / "words").read_text()
    assert words.startswith(f"--kubeconfig={tmp_path}/kubeconfig --context=here get --raw=/version")


def test_an_id_token_that_kubectl_cannot_renew_says_why(tmp_path, kubectl, monkeypatch):
    kubectl("echo 'refresh token is revoked' >&2; exit 1")
    with pytest.raises(ConfigError, match=r"cannot renew .* 'here': refresh token is revoked"):
        of_user(tmp_path, user=oidc_user("malformed"))
    kubectl("true")
    with pytest.raises(ConfigError, match="has expired: log in"):
        of_user(tmp_path, user=oidc_user(""))
    monkeypatch.setenv("PATH", "/absent")
    with pytest.raises(ConfigError, match="kubectl, which renews it, is not on PATH"):
        of_user(tmp_path, user=oidc_user(""))
