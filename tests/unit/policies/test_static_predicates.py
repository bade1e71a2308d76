"""Names, cordons, taints, readiness, selectors and affinity, one node at a time."""

import pytest

from boathouse_policies import model
from boathouse_policies.framework import eligibility as static
from tests.builders import core

NO_SCHEDULE, NO_EXECUTE = model.TaintEffect.NO_SCHEDULE, model.TaintEffect.NO_EXECUTE
EXISTS, EQUAL = model.TolerationOperator.EXISTS, model.TolerationOperator.EQUAL


def tolerates(**fields) -> model.Constraints:
    return model.Constraints(tolerations=(model.Toleration(**fields),))


@pytest.mark.parametrize(
    ("taint", "constraints", "allowed"),
    [
        pytest.param(model.Taint(key="k"), model.Constraints(), False, id="no toleration"),
        pytest.param(model.Taint(key="k", effect=NO_EXECUTE), model.Constraints(), False, id="NoExecute"),
        pytest.param(
            model.Taint(key="k", effect=model.TaintEffect.PREFER_NO_SCHEDULE),
            model.Constraints(),
            True,
            id="PreferNoSchedule",
        ),
        pytest.param(model.Taint(key="k", value="v"), tolerates(key="k", value="v"), True, id="equal value"),
        pytest.param(model.Taint(key="k", value="v"), tolerates(key="k", value="w"), False, id="other value"),
        pytest.param(
            model.Taint(key="k", value="v"), tolerates(key="k", operator=EXISTS), True, id="exists, any value"
        ),
        pytest.param(model.Taint(key="k"), tolerates(key="l", operator=EXISTS), False, id="exists, other key"),
        pytest.param(model.Taint(key="k"), tolerates(operator=EXISTS), True, id="exists, no key matches all"),
        pytest.param(model.Taint(key="k"), tolerates(operator=EQUAL), False, id="equal, no key matches none"),
        pytest.param(model.Taint(key="k"), tolerates(key="k", effect=NO_SCHEDULE), True, id="same effect"),
        pytest.param(model.Taint(key="k"), tolerates(key="k", effect=NO_EXECUTE), False, id="other effect"),
        pytest.param(
            model.Taint(key="k", value="10"),
            tolerates(key="k", operator=model.TolerationOperator.GT, value="9"),
            True,
            id="greater",
        ),
        pytest.param(
            model.Taint(key="k", value="9"),
            tolerates(key="k", operator=model.TolerationOperator.GT, value="9"),
            False,
            id="not greater",
        ),
        pytest.param(
            model.Taint(key="k", value="8"),
            tolerates(key="k", operator=model.TolerationOperator.LT, value="9"),
            True,
            id="less",
        ),
        pytest.param(
            model.Taint(key="k", value="x"),
            tolerates(key="k", operator=model.TolerationOperator.LT, value="9"),
            False,
            id="no number",
        ),
    ],
)
def test_a_taint_keeps_away_who_does_not_tolerate_it(taint, constraints, allowed):
    assert (static.refusal(constraints, core.node(taints=(taint,))) is None) is allowed


def test_the_refusal_names_the_taint():
    refusal = static.refusal(model.UNCONSTRAINED, core.node(taints=(model.Taint(key="dedicated", value="db"),)))
    assert refusal == "node(s) had untolerated taint {dedicated: db}"


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        pytest.param(core.node(unschedulable=True), static.UNSCHEDULABLE, id="cordoned"),
        pytest.param(core.node(ready=False), static.NOT_READY, id="not ready"),
    ],
)
def test_a_cordoned_or_unready_node_takes_only_who_tolerates_it(node, reason):
    assert static.refusal(model.UNCONSTRAINED, node) == reason
    assert static.refusal(tolerates(operator=EXISTS), node) is None


def test_a_pod_with_a_node_name_fits_no_other_node():
    constraints = model.Constraints(node_name=model.NodeName("n1"))
    assert static.refusal(constraints, core.node("n0")) == static.WRONG_NAME
    assert static.refusal(constraints, core.node("n1")) is None


def expression(operator: str, *values: str, key: str = "zone") -> model.Expression:
    return model.Expression(key=key, operator=model.Operator(operator), values=values)


@pytest.mark.parametrize(
    ("labels", "requirement", "holds"),
    [
        pytest.param({"zone": "a"}, expression("In", "a", "b"), True, id="In"),
        pytest.param({"zone": "c"}, expression("In", "a", "b"), False, id="In, other value"),
        pytest.param({}, expression("In", "a"), False, id="In, no label"),
        pytest.param({"zone": "a"}, expression("NotIn", "a"), False, id="NotIn, that value"),
        pytest.param({}, expression("NotIn", "a"), True, id="NotIn, no label"),
        pytest.param({"zone": ""}, expression("Exists"), True, id="Exists, empty value"),
        pytest.param({}, expression("Exists"), False, id="Exists, no label"),
        pytest.param({}, expression("DoesNotExist"), True, id="DoesNotExist"),
        pytest.param({"zone": "a"}, expression("DoesNotExist"), False, id="DoesNotExist, there"),
        pytest.param({"zone": "10"}, expression("Gt", "9"), True, id="Gt as numbers, not text"),
        pytest.param({"zone": "9"}, expression("Gt", "9"), False, id="Gt, equal"),
        pytest.param({"zone": "9" * 5000}, expression("Gt", "0"), False, id="Gt, a number of 5,000 digits"),
        pytest.param({"zone": str(1 << 63)}, expression("Gt", "0"), False, id="Gt, beyond 64 bits"),
        pytest.param({"zone": "1_0"}, expression("Gt", "0"), False, id="Gt, not a number to Kubernetes"),
        pytest.param({"zone": "0" * 5000 + "7"}, expression("Gt", "6"), True, id="Gt, leading zeros"),
        pytest.param(
            {"zone": "7"}, expression("Gt", "0" * 200_000 + "x"), False, id="Gt, very many zeros and a letter"
        ),
        pytest.param({"zone": "+7"}, expression("Gt", "-7"), True, id="Gt, signs"),
        pytest.param({"zone": str(-1 << 63)}, expression("Lt", "0"), True, id="Lt, the least of 64 bits"),
        pytest.param({"zone": str((-1 << 63) - 1)}, expression("Lt", "0"), False, id="Lt, less than 64 bits"),
        pytest.param({"zone": " 7"}, expression("Gt", "0"), False, id="Gt, a space"),
        pytest.param({"zone": "\u0667"}, expression("Gt", "0"), False, id="Gt, digits of another script"),
        pytest.param({"zone": "-1"}, expression("Lt", "0"), True, id="Lt"),
        pytest.param({"zone": "x"}, expression("Lt", "0"), False, id="Lt, no number"),
        pytest.param({}, expression("Gt", "0"), False, id="Gt, no label"),
    ],
)
def test_an_expression_is_judged_by_the_label(labels, requirement, holds):
    constraints = model.Constraints(affinity=(model.AffinityTerm(expressions=(requirement,)),))
    assert static.selected(constraints, core.node(labels=labels)) is holds


@pytest.mark.parametrize(
    ("terms", "holds"),
    [
        pytest.param((), False, id="no terms match nothing"),
        pytest.param((model.AffinityTerm(),), False, id="an empty term matches nothing"),
        pytest.param(
            (
                model.AffinityTerm(expressions=(expression("In", "b"),)),
                model.AffinityTerm(expressions=(expression("In", "a"),)),
            ),
            True,
            id="one of two terms is enough",
        ),
        pytest.param(
            (model.AffinityTerm(expressions=(expression("In", "a"), expression("In", "b"))),), False, id="all of a term"
        ),
        pytest.param(
            (model.AffinityTerm(fields=(expression("In", "n0", key="metadata.name"),)),), True, id="name field"
        ),
        pytest.param(
            (model.AffinityTerm(fields=(expression("NotIn", "n0", key="metadata.name"),)),), False, id="not that name"
        ),
    ],
)
def test_terms_are_alternatives_and_their_parts_are_not(terms, holds):
    assert static.selected(model.Constraints(affinity=terms), core.node("n0", labels={"zone": "a"})) is holds


def test_the_node_selector_and_the_affinity_must_both_hold():
    constraints = model.Constraints(
        node_selector=(("disk", "ssd"),), affinity=(model.AffinityTerm(expressions=(expression("In", "a"),)),)
    )
    assert static.refusal(constraints, core.node(labels={"zone": "a", "disk": "ssd"})) is None
    assert static.refusal(constraints, core.node(labels={"zone": "a"})) == static.WRONG_LABELS


# Nodes to avoid

SSD = model.AffinityTerm(expressions=(model.Expression(key="disk", operator=model.Operator.IN, values=("ssd",)),))


@pytest.mark.parametrize(
    ("affinity", "allowed"),
    [
        pytest.param(None, {"n1", "n3"}, id="no affinity"),
        pytest.param((SSD,), {"n1"}, id="one term"),
        pytest.param((SSD, model.AffinityTerm()), {"n1"}, id="an empty term still matches no node"),
        pytest.param((model.AffinityTerm(),), set(), id="only an empty term"),
    ],
)
def test_nodes_to_avoid_are_no_longer_allowed(affinity, allowed):
    constraints = model.Constraints(affinity=affinity).avoiding([model.NodeName("n2")])
    labels = {"n1": {"disk": "ssd"}, "n2": {"disk": "ssd"}, "n3": {}}
    nodes = [core.node(name, labels=of) for name, of in labels.items()]
    assert {node.name for node in nodes if static.refusal(constraints, node) is None} == allowed
