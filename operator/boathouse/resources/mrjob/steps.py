"""The steps of an MRJob: mapper, combiner, reducer, and how keys are told apart, partitioned and ordered."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

from boathouse.resources.base import MemorySize, Model, Quantity, for_new_objects, rule, rules
from boathouse.resources.quantity_rules import limits_rules, requests_rules

MAX_STEPS = 32
MAX_REDUCES = 10_000
MAX_COMMAND_CHARACTERS = 64 * 1024
"""Of all commands of a job. Counting bytes would cost the API server too much."""

Argument = Annotated[str, Field(max_length=4096)]
Command = Annotated[list[Argument], Field(min_length=1, max_length=64)]
ATOMIC: JsonDict = {"x-kubernetes-list-type": "atomic"}


class ResourceRequirements(Model):
    """What each task of a stage asks for."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.limits) || !('cpu' in self.limits) || !has(self.requests) || !('cpu' in self.requests) || "
                "!isQuantity(string(self.limits['cpu'])) || !isQuantity(string(self.requests['cpu'])) || "
                "quantity(string(self.limits['cpu'])).compareTo(quantity(string(self.requests['cpu']))) >= 0",
                "limits.cpu is less than requests.cpu: raise the limit or lower the request",
            )
        )
    )
    requests: Annotated[dict[str, Quantity], Field(max_length=16, json_schema_extra=rules(*requests_rules))] = Field(
        default={"cpu": "1", "memory": "512Mi"},
        description="cpu (absent: 1), memory (absent: 512Mi; also the limit), ephemeral-storage (scratch space), "
        "extended resources.",
    )
    limits: Annotated[dict[str, Quantity], Field(max_length=16, json_schema_extra=rules(*limits_rules))] | None = Field(
        default=None, description="cpu only: a task may use more CPU than it asked for, up to this."
    )


_ASKED = (
    "(has(self.resources.requests) && 'memory' in self.resources.requests && "
    "isQuantity(string(self.resources.requests['memory'])) ? quantity(string(self.resources.requests['memory'])) : "
    "quantity('512Mi'))"
)
_DEFAULT_RESOURCES: JsonDict = {"default": {"requests": {"cpu": "1", "memory": "512Mi"}}}


class ElasticMemory(Model):
    """How much less memory than it asks for a task may be started with."""

    min: MemorySize = Field(description="The least memory. The command must run in half of it; the rest sorts.")
    slowdown_percent: int = Field(
        default=50,
        ge=0,
        le=1000,
        description="How much longer a task takes with less memory, until tasks of this program have shown it.",
    )


class TaskTemplate(Model):
    """The mapper or the reducer: a command that reads lines and writes `key<TAB>value` lines."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.elasticMemory) || !isQuantity(string(self.elasticMemory.min)) || "
                f"quantity(string(self.elasticMemory.min)).compareTo({_ASKED}) <= 0",
                "elasticMemory.min is more than resources.requests.memory (absent: 512Mi): lower it",
            )
        )
    )

    command: Command = Field(description="The command and its arguments; no shell.", json_schema_extra=ATOMIC)
    resources: ResourceRequirements = Field(default_factory=ResourceRequirements, json_schema_extra=_DEFAULT_RESOURCES)
    max_attempts: int = Field(
        default=4,
        ge=1,
        le=20,
        description="The job fails when a task failed so often by its own fault (as mapreduce.map.maxattempts).",
    )
    elastic_memory: ElasticMemory | None = Field(
        default=None,
        description="Let a task be started with less memory where memory is scarce and its job ends no later for it "
        "(chart value profile: yarn-me). Absent: never.",
    )


class Combiner(Model):
    """Runs over each sorted run of a map's output, inside the map task."""

    command: Command = Field(description="The command and its arguments; no shell.", json_schema_extra=ATOMIC)


_POSITION = "[1-9][0-9]{0,3}([.][1-9][0-9]{0,3})?"
_END = "[0-9]{1,4}([.][0-9]{1,4})?"


def _key_options(flags: str, example: str) -> JsonDict:
    """The rule for -k options; `flags` may follow a position."""
    key = f"-k *{_POSITION}{flags}(,{_END}{flags})?"
    one = f"({key}|-[nr]{{1,2}})" if flags else key
    return rules(rule(f"self.matches('^{one}( +{one})*$')", f"fields and characters count from 1: write {example}"))


class Partitioner(Model):
    """Which reduce gets a key."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.options) || self.type == 'KeyFieldBasedPartitioner'",
                "options are for type KeyFieldBasedPartitioner: set the type or remove the options",
            )
        )
    )
    type: Literal["HashPartitioner", "KeyFieldBasedPartitioner"] = "HashPartitioner"
    options: str | None = Field(
        default=None,
        max_length=64,
        description='The key fields that choose the reduce, as mapreduce.partition.keypartitioner.options: "-k1,2".',
        json_schema_extra=_key_options("", "-k1,2 or -k1.3,2.5"),
    )


class Comparator(Model):
    """In which order a reduce gets its keys."""

    type: Literal["KeyFieldBasedComparator"] = "KeyFieldBasedComparator"
    options: str = Field(
        max_length=128,
        description="The key fields that are compared, numerically (n) or in reverse (r), as "
        'mapreduce.partition.keycomparator.options: "-k2,2nr -k1,1". Keys that compare equal are ordered by bytes.',
        json_schema_extra=_key_options("[nr]{0,2}", "-k2,2nr -k1,1"),
    )


Separator = Annotated[
    str,
    Field(
        min_length=1,
        max_length=8,
        json_schema_extra=rules(rule("!self.contains('\\n')", "a newline ends a line: choose another separator")),
    ),
]


class StepFields(Model):
    """Map, shuffle and reduce; a job's spec has these fields for its only step."""

    mapper: TaskTemplate | None = Field(
        default=None, description="Absent: lines pass to the reducer as they are, in tasks with its resources."
    )
    combiner: Combiner | None = None
    reducer: TaskTemplate | None = Field(default=None, description="Absent: no shuffle, the maps write the output.")
    num_reduce_tasks: int | None = Field(
        default=None, ge=0, le=MAX_REDUCES, description="Absent: 1 with a reducer. 0: map-only."
    )
    partitioner: Partitioner | None = Field(default=None, description="Absent: HashPartitioner.")
    comparator: Comparator | None = Field(default=None, description="Absent: keys are ordered by their bytes.")
    map_output_field_separator: Separator | None = Field(
        default=None,
        description="Between the fields of the mapper's lines, and between key and value, as "
        "stream.map.output.field.separator. Absent: TAB.",
    )
    num_map_output_key_fields: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="How many fields of a line are its key, as stream.num.map.output.key.fields. Absent: 1.",
    )
    map_output_key_field_separator: Separator | None = Field(
        default=None,
        description="Between the key's fields that partitioner and comparator name, as "
        "mapreduce.map.output.key.field.separator. Absent: TAB.",
    )


_NEEDS_REDUCES = (
    ("combiner", "a combiner needs reduces to combine for"),
    ("comparator", "a comparator needs reduces to sort for"),
)


def _step_rules(where: str) -> list[dict[str, str]]:
    reduces = "(has(self.reducer) && (!has(self.numReduceTasks) || self.numReduceTasks > 0))"
    return [
        rule(
            "has(self.reducer) || !has(self.numReduceTasks) || self.numReduceTasks == 0",
            f"numReduceTasks asks for reduces, but there is no reducer: add {where}.reducer, or remove numReduceTasks",
        ),
        *(
            rule(
                f"!has(self.{field}) || {reduces}",
                f"{why}: add {where}.reducer and numReduceTasks, or remove the {field}",
            )
            for field, why in _NEEDS_REDUCES
        ),
        rule(
            "has(self.mapper) || !has(self.numReduceTasks) || self.numReduceTasks > 0",
            "without a mapper and without reduces nothing is done: add a mapper, or raise numReduceTasks",
        ),
    ]


class Step(StepFields):
    """One step of a job; it reads what the step before wrote."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("has(self.mapper) || has(self.reducer)", "a step needs a mapper or a reducer"),
            *_step_rules("the step"),
        )
    )


def _command_characters(step: str) -> str:
    return " + ".join(
        f"(has({step}.{part}) ? {step}.{part}.command.map(argument, argument.size()).sum() : 0)"
        for part in ("mapper", "combiner", "reducer")
    )


_short_commands = for_new_objects(
    f"{_command_characters('self')} + "
    f"(has(self.steps) ? self.steps.map(step, {_command_characters('step')}).sum() : 0) <= {MAX_COMMAND_CHARACTERS}",
    f"the commands of all steps may have {MAX_COMMAND_CHARACTERS} characters in all: put scripts into spec.files",
)

spec_step_rules = (
    _short_commands,
    rule("has(self.mapper) || has(self.reducer) || has(self.steps)", "set spec.mapper, spec.reducer or spec.steps"),
    rule(
        "!has(self.steps) || !(" + " || ".join(f"has(self.{to_camel(name)})" for name in StepFields.model_fields) + ")",
        "spec.steps excludes mapper, combiner, reducer and their settings in spec: move them into a step",
    ),
    *_step_rules("spec"),
)


class Uber(Model):
    """Small steps run in one pod, within these limits (as mapreduce.job.ubertask.*)."""

    max_maps: int = Field(default=9, ge=1, le=64, description="As mapreduce.job.ubertask.maxmaps.")
    max_reduces: int = Field(default=1, ge=0, le=64, description="As mapreduce.job.ubertask.maxreduces.")
    max_bytes: Quantity | None = Field(
        default=None, description="Of input, as mapreduce.job.ubertask.maxbytes. Absent: splitMaxSize."
    )
