"""Draws clusters, pods and constraints on other pods: few values, so that nearly everything concerns everything."""

from __future__ import annotations

from hypothesis import strategies as st

from boathouse_policies import model
from tests.unit.policies import builders as make

from . import reference

IN, NOT_IN, EXISTS = model.Operator.IN, model.Operator.NOT_IN, model.Operator.EXISTS
ABSENT = model.Operator.DOES_NOT_EXIST


def selector(*expressions: tuple) -> model.Selector:
    """A selector of (key, operator, values...)."""
    return model.Selector(
        expressions=tuple(
            model.Expression(key=key, operator=how, values=tuple(values)) for key, how, *values in expressions
        )
    )


def label(key: str, value: str) -> model.Selector:
    """A selector of one label."""
    return model.Selector(expressions=(model.Expression(key=key, operator=IN, values=(value,)),))


expressions = st.builds(
    lambda key, how, values: model.Expression(key=key, operator=how, values=values if how in {IN, NOT_IN} else ()),
    st.sampled_from(["app", "tier"]),
    st.sampled_from([IN, IN, IN, NOT_IN, EXISTS, ABSENT]),
    st.sampled_from([("a",), ("b",), ("a", "b")]),
)
selectors = st.one_of(
    st.none(),
    st.builds(lambda found: model.Selector(expressions=tuple(found)), st.lists(expressions, max_size=2)),
)
namespaces_of_terms = st.sampled_from([("x",), ("x",), ("x", "y"), ("y",)])
labels = st.fixed_dictionaries({}, optional={"app": st.sampled_from("ab"), "tier": st.sampled_from("ab")})
keys = st.sampled_from(["zone", "host", "host"])
pod_sets = st.one_of(
    st.builds(model.PodSet, selector=selectors, namespaces=namespaces_of_terms),
    st.builds(model.PodSet, selector=selectors, namespace_selector=selectors, namespaces=st.sampled_from([(), ("y",)])),
)
terms = st.builds(model.PodTerm, topology_key=keys, pods=pod_sets)
spreads = st.builds(
    model.Spread,
    topology_key=keys,
    max_skew=st.integers(1, 2),
    selector=selectors,
    min_domains=st.sampled_from([1, 1, 2, 4]),
    honors_affinity=st.booleans(),
    honors_taints=st.booleans(),
)
node_selectors = st.sampled_from([(), (), (("disk", "ssd"),)])
tolerations = st.sampled_from([(), (model.Toleration(key="t", operator=model.TolerationOperator.EXISTS),)])


def few(one, most=2):
    """A short tuple."""
    return st.lists(one, max_size=most).map(tuple)


constraints = st.builds(
    model.Constraints,
    node_selector=node_selectors,
    tolerations=tolerations,
    pod_affinity=st.one_of(st.just(()), few(terms)),
    pod_anti_affinity=st.one_of(st.just(()), few(terms)),
    spread=st.one_of(st.just(()), few(spreads)),
)
namespaces = st.fixed_dictionaries({}, optional={"x": labels, "y": labels})


@st.composite
def nodes(draw: st.DrawFn, most: int = 6) -> list[model.Node]:
    """Some nodes; some lack a label, or have a taint."""
    return [
        make.node(
            f"n{i}",
            max_pods=draw(st.sampled_from([1, 3, 110])),
            taints=draw(st.sampled_from([(), (), (model.Taint(key="t"),)])),
            labels={
                key: value
                for key, value in {
                    "host": f"n{i}",
                    "zone": draw(st.sampled_from("abc")),
                    "disk": draw(st.sampled_from(["ssd", "hdd"])),
                }.items()
                if draw(st.integers(0, 7))
            },
        )
        for i in range(draw(st.integers(1, most)))
    ]


@st.composite
def pods(draw: st.DrawFn, where: st.SearchStrategy[str]) -> reference.Pod:
    """A pod on a node, perhaps one that does not exist."""
    anti = draw(st.one_of(st.just(()), few(terms)))
    return reference.Pod(
        namespace=draw(st.sampled_from("xy")),
        labels=draw(labels),
        constraints=model.Constraints(pod_anti_affinity=anti),
        node=draw(where),
        is_ending=draw(st.sampled_from([False, False, True])),
    )
