"""What happens to a component that ends while a cluster starts."""

import itertools
from types import SimpleNamespace

import pytest

from boathouse_e2e.errors import ClusterError
from boathouse_e2e.local import provider
from boathouse_e2e.local.processes import Component

KUBELET = Component(name="kubelet", command=("kubelet",), log="kubelet.log")


class Start(provider.Start):
    """A start whose kubelet ends so often, and is checked without a pause."""

    def __init__(self, monkeypatch, tmp_path, ends):
        clock = itertools.count(0, 2)
        monkeypatch.setattr(provider, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda _: None))
        self._layout = SimpleNamespace(logs=tmp_path)
        self.ends, self.launched = ends, 0

    def _lives(self, _component):
        return self.launched >= self.ends

    def _launch(self, *components):
        self.launched += len(components)

    def wait(self, **again):
        self._wait("it is ready", lambda: self.launched >= self.ends, ["kubelet"], **again)


def test_a_kubelet_that_ends_while_its_cluster_starts_is_started_once_more(monkeypatch, tmp_path):
    start = Start(monkeypatch, tmp_path, ends=1)
    start.wait(again={"kubelet": KUBELET})
    assert start.launched == 1


@pytest.mark.parametrize(("ends", "again"), [(1, {}), (2, {"kubelet": KUBELET})])
def test_the_start_is_given_up_where_it_ends_again_or_need_not_be_tried(monkeypatch, tmp_path, ends, again):
    (tmp_path / "kubelet.log").write_text("address already in use")
    with pytest.raises(ClusterError, match=r"(?s)kubelet ended.*address already in use"):
        Start(monkeypatch, tmp_path, ends).wait(again=again)
