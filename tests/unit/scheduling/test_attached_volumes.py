"""Volumes that are attached to a node count against its limit as kube-scheduler counts them."""

import dataclasses

from boathouse.cluster import views, wire
from boathouse.scheduling.volumes import rules

from .test_volumes import claim, judge, limits, volume


def attached(*volumes: str, attacher: str = "d") -> dict[str, views.AttachmentView]:
    """Attachments of volumes to n1."""
    return {
        name: views.AttachmentView(
            metadata=wire.ObjectMeta(name=name),
            spec=views.AttachmentSpec(
                attacher=attacher, node_name="n1", source=views.AttachmentSource(persistent_volume_name=name)
            ),
        )
        for name in volumes
    }


def judge_of(attachments, count: int) -> rules.Judge:
    """Claims a and b with volumes va and vb, and a limit of n1."""
    known = [claim(name, volume=f"v{name}") for name in "ab"]
    asked = judge(*known, volume("va", driver="d"), volume("vb", driver="d"), csi_nodes=limits(d=count))
    return rules.Judge(dataclasses.replace(asked._objects, attachments=attachments), {})


def test_a_volume_that_is_attached_and_that_no_pod_of_the_node_uses_counts_twice_for_a_pod_that_needs_it():
    assert judge_of(attached("va"), 1).too_many(["ns/a"], "n1", set())
    assert not judge_of(attached("va"), 2).too_many(["ns/a"], "n1", set())


def test_a_volume_that_is_attached_for_a_pod_of_the_node_counts_once():
    assert not judge_of(attached("va"), 1).too_many(["ns/a"], "n1", {"ns/a"})
    assert judge_of(attached("va"), 1).too_many(["ns/b"], "n1", {"ns/a"})


def test_a_volume_that_is_attached_takes_the_room_of_another():
    assert judge_of(attached("va"), 1).too_many(["ns/b"], "n1", set())
    assert not judge_of(attached("va"), 1).too_many(["ns/b"], "n2", set())


def test_an_attachment_counts_against_the_driver_that_attaches_it():
    assert not judge_of(attached("va", attacher="other"), 1).too_many(["ns/b"], "n1", set())
    assert not judge_of(attached("va", attacher=""), 1).too_many(["ns/b"], "n1", set())
