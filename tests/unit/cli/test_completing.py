import sys
import types

import pytest

from boathouse_cli import __main__, gateway, options
from boathouse_cli.errors import CommandError
from tests.builders import cli


class Gateway:
    def objects(self, plural):
        assert plural == "sparkapps"
        return [cli.sparkapp("pi"), cli.sparkapp("pagerank"), cli.sparkapp("kmeans")]


def complete(monkeypatch, incomplete, connect=lambda **_: Gateway(), among=options.jobs):
    monkeypatch.setattr(gateway.Gateway, "connect", connect)
    return list(among(types.SimpleNamespace(params={"namespace": "demo"}), incomplete))


@pytest.mark.parametrize(
    ("incomplete", "expected"),
    [
        ("", ["mrjob/", "sparkapp/"]),
        ("sp", ["sparkapp/"]),
        ("sparkapp/p", ["sparkapp/pi", "sparkapp/pagerank"]),
        ("sapp/k", ["sapp/kmeans"]),
        ("node/", []),
        ("mrcluster/e", []),
    ],
)
def test_kinds_and_names_are_completed(monkeypatch, incomplete, expected):
    assert complete(monkeypatch, incomplete) == expected


def test_commands_for_all_objects_complete_clusters_too(monkeypatch):
    assert complete(monkeypatch, "mrc", among=options.objects) == ["mrcluster/"]


def test_a_cluster_that_does_not_answer_completes_nothing(monkeypatch):
    def fail(**_):
        raise CommandError("no")

    assert complete(monkeypatch, "sparkapp/", fail) == []


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["expl"], ["explain", ":4"]),
        (["explain", "sparka"], ["sparkapp/", ":4"]),
        (["list", "--ki"], ["--kind", ":4"]),
        (["logs", "a b", "--exec"], ["--executor", ":4"]),
        (["convert", ""], ["", ":0"]),
    ],
)
def test_kubectl_gets_the_completions_and_whether_files_may_follow(monkeypatch, capsys, words, lines):
    monkeypatch.setattr(__main__.os, "environ", dict(__main__.os.environ))
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-boathouse", *words])
    __main__.complete()
    assert capsys.readouterr().out.splitlines() == lines
