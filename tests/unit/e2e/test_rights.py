"""What is granted against what was used."""

import json

from boathouse_e2e import rights
from boathouse_e2e.rights import Right

ROLE = {"kind": "ClusterRole", "metadata": {"name": "boathouse-reader"}}
RULES = [{"apiGroups": ["", "boathouse.dev"], "resources": ["pods"], "verbs": ["get", "list"]}]
BOUND = {"roleRef": {"kind": "ClusterRole", "name": "boathouse-reader"}, "subjects": [rights.ACCOUNT]}


def audit_event(verb="get", resource="pods", namespace="demo", *, user=rights.USER, decision="allow", **reference):
    return {
        "user": {"username": user},
        "verb": verb,
        "objectRef": {"resource": resource, "namespace": namespace, **reference},
        "annotations": {"authorization.k8s.io/decision": decision},
    }


def test_a_right_is_a_verb_on_a_resource_with_its_group_and_subresource():
    used = rights.used([audit_event("patch", "mrjobs", apiGroup="boathouse.dev", subresource="status")])
    assert used == {Right("jobs", "mrjobs/status.boathouse.dev", "patch")}


def test_what_others_did_and_what_was_not_allowed_is_no_use():
    assert rights.used([audit_event(user="alice"), audit_event(decision="forbid")]) == set()


def test_a_right_used_in_the_namespace_of_the_release_is_its_own():
    assert rights.used([audit_event(namespace="boathouse-system")]) == {Right("own", "pods", "get")}


def test_rules_are_granted_by_bindings_to_the_operators_account_only():
    binding = {"kind": "ClusterRoleBinding", "metadata": {"name": "b"}, **BOUND}
    other = binding | {"subjects": [{"kind": "User", "name": "alice"}]}
    assert rights.granted([ROLE | {"rules": RULES}, other]) == set()
    assert rights.granted([ROLE | {"rules": RULES}, binding]) == {
        Right("cluster", f"pods{group}", verb) for group in ("", ".boathouse.dev") for verb in ("get", "list")
    }


def test_a_right_in_the_releases_namespace_must_be_used_there():
    granted = {Right("own", "pods", "patch"), Right("cluster", "pods", "list")}
    used = {Right("jobs", "pods", "patch"), Right("own", "pods", "list")}
    assert rights.unused(granted, used) == [Right("own", "pods", "patch")]


def test_reports_of_a_session_add_up(tmp_path, monkeypatch):
    monkeypatch.setattr(rights, "REPORTS", tmp_path)
    for verb in ("get", "list"):
        (tmp_path / "audit.log").write_text(
            json.dumps(audit_event(verb)) + "\n" + json.dumps(audit_event("watch", user="a")) + "\n"
        )
        rights.record(tmp_path / "audit.log", "session")
    assert set(rights.read(tmp_path / "session.json")) == {Right("jobs", "pods", "get"), Right("jobs", "pods", "list")}


def test_nothing_is_compared_where_a_session_was_not_audited(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rights, "REPORTS", tmp_path)
    (tmp_path / "faults.json").write_text("[]")
    assert rights.main() == 0
    assert "no audit log of the sessions e2e" in capsys.readouterr().out


def test_an_explanation_of_a_right_that_is_not_granted_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rights, "REPORTS", tmp_path)
    monkeypatch.setattr(rights, "rendered", list)
    monkeypatch.setattr(rights, "reasons", lambda: {"cluster: get pods": "because"})
    for session in rights.SESSIONS:
        (tmp_path / f"{session}.json").write_text("[]")
    assert rights.main() == 1
    assert "cluster: get pods: explained in rights.yaml, and not granted" in capsys.readouterr().out


def test_every_explanation_in_the_table_is_a_sentence():
    assert all(text.endswith(".") and len(text) > 40 for text in rights.reasons().values())


def test_a_right_that_is_neither_used_nor_explained_fails(tmp_path, monkeypatch, capsys):
    binding = {"kind": "ClusterRoleBinding", "metadata": {"name": "b"}, **BOUND}
    monkeypatch.setattr(rights, "REPORTS", tmp_path)
    monkeypatch.setattr(rights, "rendered", lambda: [ROLE | {"rules": RULES}, binding])
    (tmp_path / "faults.json").write_text("[]")
    (tmp_path / "e2e.json").write_text(json.dumps([["jobs", "pods", "get"], ["jobs", "pods", "list"]]))
    monkeypatch.setattr(rights, "reasons", lambda: {"cluster: get pods.boathouse.dev": "because"})
    assert rights.main() == 1
    assert "cluster: list pods.boathouse.dev: granted, used by no test" in capsys.readouterr().out
    (tmp_path / "e2e.json").write_text(json.dumps([["jobs", f"pods{g}", "list"] for g in ("", ".boathouse.dev")]))
    monkeypatch.setattr(
        rights, "reasons", lambda: {"cluster: get pods": "because", "cluster: get pods.boathouse.dev": "because"}
    )
    assert rights.main() == 0
