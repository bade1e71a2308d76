"""Steps of an MRJob: mapper, combiner, reducer, and how keys are extracted, partitioned and ordered."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

from boathouse.resources import base
from boathouse.resources.base import ATOMIC, MemorySize, Model, Quantity, checked, holds, optional, rule, rules, whole


def _bound(name: str, comparison: str, bound: str, why: str) -> dict[str, str]:
    complaint = f"is {'less' if comparison == '>=' else 'more'} than {bound}: {why}"
    value = f"string(self['{name}'])"
    holds = f"quantity({value}).compareTo(quantity('{bound}')) {comparison} 0"
    return rule(f"!('{name}' in self) || !isQuantity({value}) || {holds}", f"'{name} \"' + {value} + '\" {complaint}'")


_most_cpu = _bound("cpu", "<=", "1M", "no node has so many cores; lower it")
requests_rules = (
    base.SHORT_KEYS,
    rule(
        "self.all(name, name in ['cpu', 'memory', 'ephemeral-storage'] || name.contains('/'))",
        "requests may hold cpu, memory, ephemeral-storage and extended resources (example.com/name)",
    ),
    _bound("cpu", ">=", "1m", "a task needs some CPU"),
    _bound("memory", ">=", "64Mi", "the task runtime itself needs that much"),
    _most_cpu,
)
limits_rules = (
    rule(
        "self.all(name, name == 'cpu')",
        "limits may hold cpu only: the memory limit is requests.memory; remove the others",
    ),
    _most_cpu,
)

MAX_STEPS, MAX_REDUCES = 32, 10_000
MAX_COMMAND_CHARACTERS = 64 * 1024
"""Limit of a job's commands. It counts characters, because counting bytes exceeds the API server's CEL budget."""
Argument = Annotated[str, Field(max_length=4096)]
Command = Annotated[list[Argument], Field(min_length=1, max_length=64)]


class ResourceRequirements(Model):
    """Resources of each task of a stage."""

    model_config = checked(
        rule(
            "!has(self.limits) || !('cpu' in self.limits) || !has(self.requests) || !('cpu' in self.requests) || "
            "!isQuantity(string(self.limits['cpu'])) || !isQuantity(string(self.requests['cpu'])) || "
            "quantity(string(self.limits['cpu'])).compareTo(quantity(string(self.requests['cpu']))) >= 0",
            "limits.cpu is less than requests.cpu: raise the limit or lower the request",
        )
    )
    requests: Annotated[dict[str, Quantity], Field(max_length=16, json_schema_extra=rules(*requests_rules))] = Field(
        default={"cpu": "1", "memory": "512Mi"},
        description="cpu (absent: 1), memory (absent: 512Mi; also the limit), ephemeral-storage (scratch space), "
        "extended resources.",
    )
    limits: Annotated[dict[str, Quantity], Field(max_length=16, json_schema_extra=rules(*limits_rules))] | None = (
        optional("cpu only: a task may use more CPU than it requests, up to this limit.")
    )


_ASKED = (
    "(has(self.resources.requests) && 'memory' in self.resources.requests && "
    "isQuantity(string(self.resources.requests['memory'])) ? quantity(string(self.resources.requests['memory'])) : "
    "quantity('512Mi'))"
)


class ElasticMemory(Model):
    """Reduced memory that a task may start with."""

    min: MemorySize = Field(description="Minimum memory. The command must run in half of it; sorting uses the rest.")
    slowdown_percent: int = Field(
        default=50,
        ge=0,
        le=1000,
        description="Extra run time of a task with less memory, until Boathouse has measured it for this program.",
    )


class TaskTemplate(Model):
    """The mapper or the reducer: a command that reads lines and writes `key<TAB>value` lines."""

    model_config = checked(
        rule(
            "!has(self.elasticMemory) || !isQuantity(string(self.elasticMemory.min)) || "
            f"quantity(string(self.elasticMemory.min)).compareTo({_ASKED}) <= 0",
            "elasticMemory.min is more than resources.requests.memory (absent: 512Mi): lower it",
        )
    )

    command: Command = Field(description="The command and its arguments; no shell.", json_schema_extra=ATOMIC)
    resources: ResourceRequirements = whole(ResourceRequirements)
    max_attempts: int = Field(
        default=4,
        ge=1,
        le=20,
        description="The job fails when a task failed this often with a user error (like mapreduce.map.maxattempts).",
    )
    failures_max_percent: int = Field(
        default=0,
        ge=0,
        le=100,
        description="Share of the stage's tasks that may fail maxAttempts times without failing the job, which then "
        "lacks their output, like mapreduce.map.failures.maxpercent and mapreduce.reduce.failures.maxpercent.",
    )
    elastic_memory: ElasticMemory | None = optional(
        "Lets a task start with less memory if memory is scarce and this does not delay its job "
        "(chart value profile: yarn-me or boathouse). Absent: never."
    )


class Combiner(Model):
    """Command that runs inside the map task on each sorted run of its output."""

    command: Command = Field(description="The command and its arguments; no shell.", json_schema_extra=ATOMIC)


_POSITION = "[1-9][0-9]{0,3}([.][1-9][0-9]{0,3})?"
_END = "[0-9]{1,4}([.][0-9]{1,4})?"


def _key_options(flags: str, example: str) -> JsonDict:
    """Return the rule for -k options, where the regular expression `flags` may follow a position."""
    key = f"-k *{_POSITION}{flags}(,{_END}{flags})?"
    option = f"({key}|-[nr]{{1,2}})" if flags else key
    return holds(f"self.matches('^{option}( +{option})*$')", f"fields and characters count from 1: write {example}")


class Partitioner(Model):
    """Assigns keys to reduces."""

    model_config = checked(
        rule(
            "!has(self.options) || self.type == 'KeyFieldBasedPartitioner'",
            "options are for type KeyFieldBasedPartitioner: set the type or remove the options",
        )
    )
    type: Literal["HashPartitioner", "KeyFieldBasedPartitioner"] = Field(
        default="HashPartitioner", description="By the whole key, or by some of its fields."
    )
    options: str | None = optional(
        'Key fields that determine the reduce, like mapreduce.partition.keypartitioner.options: "-k1,2".',
        max_length=64,
        json_schema_extra=_key_options("", "-k1,2 or -k1.3,2.5"),
    )


class Comparator(Model):
    """Orders the keys of a reduce."""

    type: Literal["KeyFieldBasedComparator"] = Field(default="KeyFieldBasedComparator", description="The only type.")
    options: str = Field(
        max_length=128,
        description="Key fields to compare, numerically (n) or in reverse (r), like "
        'mapreduce.partition.keycomparator.options: "-k2,2nr -k1,1". Keys that compare equal are ordered by bytes.',
        json_schema_extra=_key_options("[nr]{0,2}", "-k2,2nr -k1,1"),
    )


Separator = Annotated[
    str,
    Field(
        min_length=1,
        max_length=8,
        json_schema_extra=holds("!self.contains('\\n')", "a newline ends a line: choose another separator"),
    ),
]


class StepFields(Model):
    """Map, shuffle and reduce of one step. The spec of a job with a single step has these fields too."""

    mapper: TaskTemplate | None = optional(
        "Absent: lines pass unchanged to the reducer, through map tasks with its resources."
    )
    combiner: Combiner | None = None
    reducer: TaskTemplate | None = optional("Absent: no shuffle; maps write the output.")
    num_reduce_tasks: int | None = optional("Absent: 1 with a reducer. 0: map-only.", ge=0, le=MAX_REDUCES)
    partitioner: Partitioner | None = optional("Absent: HashPartitioner.")
    comparator: Comparator | None = optional("Absent: keys are ordered by their bytes.")
    map_output_field_separator: Separator | None = optional(
        "Separates the fields of the mapper's lines, and key and value, like "
        "stream.map.output.field.separator. Absent: TAB."
    )
    num_map_output_key_fields: int | None = optional(
        "Number of fields that form the key, like stream.num.map.output.key.fields. Absent: 1.", ge=1, le=64
    )
    map_output_key_field_separator: Separator | None = optional(
        "Separates the key fields that partitioner and comparator name, like "
        "mapreduce.map.output.key.field.separator. Absent: TAB."
    )
    reduce_input_field_separator: Separator | None = optional(
        "Separates key and value of the lines that combiner and reducer read, like "
        "stream.reduce.input.field.separator. Absent: TAB."
    )
    reduce_output_field_separator: Separator | None = optional(
        "Separates the fields of the lines that combiner and reducer write, and key and value, like "
        "stream.reduce.output.field.separator. Absent: TAB."
    )
    num_reduce_output_key_fields: int | None = optional(
        "Number of fields that form the key of these lines, like stream.num.reduce.output.key.fields. Absent: 1.",
        ge=1,
        le=64,
    )


_NEEDS_REDUCES = (
    ("combiner", "a combiner needs reduces to combine for"),
    ("comparator", "a comparator needs reduces to sort for"),
    ("reduceInputFieldSeparator", "it separates what reduces read"),
    ("reduceOutputFieldSeparator", "it separates what reduces write"),
    ("numReduceOutputKeyFields", "they are fields of what reduces write"),
)


def _step_rules(where: str) -> list[dict[str, str]]:
    reduces = "(has(self.reducer) && (!has(self.numReduceTasks) || self.numReduceTasks > 0))"
    return [
        rule(
            "has(self.reducer) || !has(self.numReduceTasks) || self.numReduceTasks == 0",
            f"numReduceTasks requests reduces, but there is no reducer: add {where}.reducer, or remove numReduceTasks",
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
            "a step without a mapper and without reduces does nothing: add a mapper, or raise numReduceTasks",
        ),
    ]


class Step(StepFields):
    """One step of a job, which reads the output of the previous step."""

    model_config = checked(
        rule("has(self.mapper) || has(self.reducer)", "a step needs a mapper or a reducer"), *_step_rules("the step")
    )


def _command_characters(step: str) -> str:
    return " + ".join(
        f"(has({step}.{part}) ? {step}.{part}.command.map(argument, argument.size()).sum() : 0)"
        for part in ("mapper", "combiner", "reducer")
    )


_short_commands = base.for_new_objects(
    f"{_command_characters('self')} + "
    f"(has(self.steps) ? self.steps.map(step, {_command_characters('step')}).sum() : 0) <= {MAX_COMMAND_CHARACTERS}",
    f"the commands of all steps may have {MAX_COMMAND_CHARACTERS} characters in total: put scripts into spec.files",
)

spec_step_rules = (
    _short_commands,
    rule(
        "has(self.mapper) || has(self.reducer) || has(self.steps) || has(self.jar)",
        "set spec.mapper, spec.reducer or spec.steps",
    ),
    rule(
        "!has(self.steps) || !(" + " || ".join(f"has(self.{to_camel(name)})" for name in StepFields.model_fields) + ")",
        "spec.steps excludes mapper, combiner, reducer and their settings in spec: move them into a step",
    ),
    *_step_rules("spec"),
)


class Uber(Model):
    """Runs steps within these limits in one pod (like mapreduce.job.ubertask.*)."""

    max_maps: int = Field(default=9, ge=1, le=64, description="Like mapreduce.job.ubertask.maxmaps.")
    max_reduces: int = Field(default=1, ge=0, le=64, description="Like mapreduce.job.ubertask.maxreduces.")
    max_bytes: Quantity | None = optional("Maximum input, like mapreduce.job.ubertask.maxbytes. Absent: splitMaxSize.")
