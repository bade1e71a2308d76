"""Command lines of Hadoop Streaming as MRJobs, whose tasks have pods of their own or run on an MRCluster. Pure."""

from __future__ import annotations

import dataclasses
import posixpath
import re
import shlex
from typing import TYPE_CHECKING, Any, Final

import pydantic

from boathouse.resources import names
from boathouse.resources.hadoop import is_setting
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.resources.mrjob.spec import MRJobSpec
from boathouse.resources.pods.environment import literal
from boathouse_cli.conversion import hadoop_properties as properties
from boathouse_cli.conversion.draft import Converted, Draft, Unconvertible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

CLASS: Final = "org.apache.hadoop.streaming.HadoopStreaming"
SECRET: Final = "s3-credentials"  # noqa: S105 - the name of a Secret
_NAME: Final = "streaming"
_VALUED: Final = frozenset({
    "D", "jobconf", "files", "archives", "input", "output", "mapper", "combiner", "reducer", "file", "cmdenv",
    "inputformat", "outputformat", "partitioner", "numReduceTasks", "cacheFile", "cacheArchive",
})  # fmt: skip
_FLAGS: Final = frozenset({"lazyOutput", "background", "verbose", "debug"})
_NO_EFFECT: Final = {
    "conf": "is not read: write its properties with -D",
    "fs": "has no effect: input and output are URLs",
    "jt": "has no effect: --cluster names the Hadoop cluster",
    "dfs": "has no effect: input and output are URLs",
    "libjars": "has no effect: commands load no classes",
    "additionalconfspec": "is not read: write its properties with -D",
    "mapdebug": "does not run: read kubectl boathouse logs",
    "reducedebug": "does not run: read kubectl boathouse logs",
    "tokenCacheFile": "has no effect: tasks have keys of a Secret",
}
_ADVICE: Final = {
    "io": "commands read and write lines: encode binary values, such as base64",
    "inputreader": "records of XML have no counterpart: cut the input with textinputformat.record.delimiter",
    "outputformat": "has no counterpart: commands write lines (TextOutputFormat)",
    "help": "is no submission",
    "info": "is no submission",
}
_STREAMS: Final = ("stream.map.input", "stream.map.output", "stream.reduce.input", "stream.reduce.output")
_KEY_ONLY: Final = "keyonlytext"
_JAVA: Final = re.compile(r"([a-z]\w*\.)+[A-Z]\w*")
_AGGREGATE: Final = "aggregate"
_NONE: Final = "NONE"
_OF_REDUCES: Final = frozenset({
    "comparator.options", "reduceInputFieldSeparator", "reduceOutputFieldSeparator", "numReduceOutputKeyFields",
})  # fmt: skip
_COMMA: Final = re.compile(r",(?![^{]*})")
"""A comma between items; those in braces belong to a glob."""
_S3: Final = re.compile("s3[an]?://")
_HDFS: Final = re.compile("hdfs://([a-z]([-a-z0-9]*[a-z0-9])?)/")
_FIRST: Final = ("clusterRef", "input", "output")
_FIELDS: Final = dict.fromkeys([*_FIRST, *(field.alias or name for name, field in MRJobSpec.model_fields.items())])
"""The fields of a spec, in the order in which people read them."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """The words of a command line, sorted.

    Attributes:
        options: Values of each option, without its dash.
        properties: By the names of today.
        where: Where a property was said, for notes.
    """

    options: dict[str, list[str]]
    properties: dict[str, str]
    where: dict[str, str]

    def last(self, option: str) -> str | None:
        return self.options[option][-1] if option in self.options else None

    def every(self, *options: str) -> list[tuple[str, str]]:
        """Return options with their values, of which one may list several."""
        given = [(option, value) for option in options for value in self.options.get(option, ())]
        return [(option, item) for option, value in given for item in _COMMA.split(value) if item]


def convert(words: Sequence[str], *, cluster: str | None, source: str) -> Converted:
    """Convert one command line.

    Args:
        words: The words after the jar.
        cluster: The MRCluster that runs the job; None: its tasks have pods of their own.
        source: For notes.
    """
    draft = Draft(source)
    try:
        return _Job(draft, _parse(draft, words), cluster).made()
    except Unconvertible as why:
        return draft.refuse(why)


def _parse(draft: Draft, words: Sequence[str]) -> _Line:
    line = _Line(options={}, properties={}, where={})
    left = [word for word in reversed(words) if word != CLASS]
    while left:
        word = left.pop()
        option = word.lstrip("-")
        if not word.startswith("-"):
            raise Unconvertible(word, "is no option of Hadoop Streaming: correct it")
        if option in _FLAGS:
            line.options[option] = []
            continue
        if option.startswith("D") and len(option) > 1:
            option, value = "D", option[1:]
        elif option in {"help", "info"} or not left:
            raise Unconvertible(word, _ADVICE.get(option, "has no value: write one after it"))
        else:
            value = left.pop()
        _take(draft, line, word, option, value)
    return line


def _take(draft: Draft, line: _Line, word: str, option: str, value: str) -> None:
    if option in {"D", "jobconf"}:
        key, equals, text = value.partition("=")
        if not equals:
            raise Unconvertible(word, f"{value} is no property: write KEY=VALUE")
        name = properties.OLD_NAMES.get(key, key)
        line.properties[name] = text
        line.where[name] = f"-D {key}"
    elif option in _VALUED:
        line.options.setdefault(option, []).append(value)
    elif option in _NO_EFFECT:
        draft.note(word, _NO_EFFECT[option])
    elif option != "io" or value != "text":
        raise Unconvertible(word, _ADVICE.get(option, "is no option of Hadoop Streaming: correct it"))


class _Job:
    """An MRJob that is made of a line."""

    def __init__(self, draft: Draft, line: _Line, cluster: str | None) -> None:
        self._draft = draft
        self._line = line
        self._cluster = cluster
        self._left = dict(line.properties)
        self._name = object_name(self._left.pop(properties.NAME, _NAME))

    def made(self) -> Converted:
        draft = self._draft
        if self._cluster is not None:
            draft.put("clusterRef.name", self._cluster)
        self._commands()
        self._classes()
        self._output()
        self._fields()
        self._data()
        self._files()
        self._environment()
        self._rest()
        self._storage()
        return self._finish()

    def _commands(self) -> None:
        line, draft = self._line, self._draft
        for kind in ("mapper", "combiner", "reducer"):
            text = line.last(kind)
            if text is not None and text != _NONE:
                draft.put(f"{kind}.command", _command(f"-{kind}", text))
        reduces = line.last("numReduceTasks")
        if reduces is not None:
            self._left["mapreduce.job.reduces"] = reduces
        if line.last("reducer") == _NONE or self._left.get("mapreduce.job.reduces") == "0":
            self._left.pop("mapreduce.job.reduces", None)
            for unused in ("reducer", "combiner"):
                draft.spec.pop(unused, None)
        elif not draft.get("reducer"):
            draft.put("reducer.command", ["cat"])  # IdentityReducer

    def _classes(self) -> None:
        found = self._class("-inputformat", self._line.last("inputformat"), properties.INPUT_FORMATS)
        if found is not None:
            self._draft.put("inputFormat", found)
        if found == "CombineTextInputFormat":  # streaming knows no default of it, but for TextInputFormat alone
            self._left.setdefault("stream.map.input.ignoreKey", "false")
        self._class("-outputformat", self._line.last("outputformat"), ("TextOutputFormat",))
        chosen = self._left.pop(properties.PARTITIONER_CLASS, None)
        partitioner = self._class("-partitioner", self._line.last("partitioner") or chosen, properties.PARTITIONERS)
        if partitioner is not None:
            self._draft.put("partitioner.type", partitioner)
        if partitioner != "KeyFieldBasedPartitioner":
            self._left.pop("mapreduce.partition.keypartitioner.options", None)
        comparator = self._left.pop(properties.COMPARATOR_CLASS, None)
        if self._class(f"-D {properties.COMPARATOR_CLASS}", comparator, (properties.COMPARATOR,)) is None:
            self._left.pop("mapreduce.partition.keycomparator.options", None)

    @staticmethod
    def _class(where: str, name: str | None, known: Iterable[str]) -> str | None:
        if name is None or properties.short(name) in known:
            return name and properties.short(name)
        raise Unconvertible(where, f"{name} has no counterpart: there are {', '.join(known)}")

    def _output(self) -> None:
        draft, has_reduces = self._draft, "reducer" in self._draft.spec
        last = "stream.reduce.output" if has_reduces else "stream.map.output"
        for key in _STREAMS:
            kind = self._left.pop(key, "text")
            if kind == _KEY_ONLY and key == last:
                draft.put("keyOnlyOutput", True)
            elif kind != "text" and (has_reduces or key.startswith("stream.map")):
                raise Unconvertible(f"-D {key}", _ADVICE["io"])
        compresses = self._left.pop(properties.COMPRESS, "false").lower() == "true"
        codec = self._left.pop(properties.CODEC, "DefaultCodec")
        if compresses and (found := properties.CODECS.get(properties.short(codec))):
            draft.put("outputCompression", found)
        elif compresses:
            draft.note(f"-D {properties.CODEC}", f"{codec} has no counterpart: name {', '.join(properties.CODECS)}")
        if "lazyOutput" in self._line.options:
            draft.put("lazyOutput", True)
        if self._cluster is None and self._left.pop(properties.UBER, "false").lower() == "true":
            draft.put("uber", {})

    def _fields(self) -> None:
        self._left.pop(properties.RECURSIVE, None)
        queue = {properties.QUEUE} if self._cluster is not None else set()  # YARN's, not Boathouse's
        for key in [key for key in self._left if key in properties.FIELDS.keys() - queue]:
            field, read = properties.FIELDS[key]
            text = self._left.pop(key)
            if not self._has_effect(field):
                continue
            try:
                self._draft.put(field, read(text))
            except (ValueError, KeyError):
                raise Unconvertible(self._line.where.get(key, key), f"{text!r} cannot be read: correct it") from None

    def _has_effect(self, field: str) -> bool:
        """Return whether the field may be set: Hadoop ignores what is for another format, or for missing reduces."""
        spec = self._draft.spec
        input_format = spec.get("inputFormat", "TextInputFormat")
        match field:
            case "linesPerMap":
                return bool(input_format == "NLineInputFormat")
            case "keyValueSeparator":
                return bool(input_format == "KeyValueTextInputFormat")
            case "recordDelimiter":
                return input_format in {"TextInputFormat", "CombineTextInputFormat"}
            case "outputSeparator":
                return "keyOnlyOutput" not in spec
            case _ if field in _OF_REDUCES:
                return "reducer" in spec
            case _:
                stage = field.partition(".")[0]
                return stage not in {"mapper", "reducer"} or stage in spec

    def _data(self) -> None:
        inputs = [self._data_url(option, item) for option, item in self._line.every("input")]
        if not inputs:
            raise Unconvertible("-input", "is missing: name the input")
        self._draft.put("input", inputs)
        output = self._line.last("output")
        if output is None:
            raise Unconvertible("-output", "is missing: name the output")
        self._draft.put("output", self._data_url("output", output))

    def _data_url(self, option: str, url: str) -> str:
        if _S3.match(url):
            return _S3.sub("s3://" if self._cluster is None else "s3a://", url, count=1)
        if _HDFS.match(url):
            return url
        if url.startswith("hdfs:///"):
            url = url.removeprefix("hdfs://")
        if url.startswith("/") and self._cluster is not None:
            return url
        if self._cluster is None:
            raise Unconvertible(
                f"-{option}", f"{url} cannot be read by tasks: write s3://BUCKET/PATH or hdfs://CLUSTER/PATH"
            )
        raise Unconvertible(
            f"-{option}", f"{url} is no path: write /PATH, s3a://BUCKET/PATH, or hdfs://CLUSTER/PATH of an MRCluster"
        )

    def _files(self) -> None:
        local = []
        for option, item in self._line.every("files", "file", "cacheFile"):
            path, _, name = item.partition("#")
            name = name or posixpath.basename(path)
            if _S3.match(path):
                self._draft.extend("files", [{"name": name, "url": _S3.sub("s3://", path, count=1)}])
            elif "://" in path and not path.startswith("file:"):
                raise Unconvertible(f"-{option}", f"{path} cannot be fetched: put it into S3 or into a ConfigMap")
            else:
                local.append(f"--from-file={name}={path.removeprefix('file://')}")
                key = {"name": f"{self._name}-files", "key": name}
                self._draft.extend("files", [{"name": name, "configMapKeyRef": key}])
        if local:
            command = shlex.join(["kubectl", "create", "configmap", f"{self._name}-files", *local])
            self._draft.note("-files", f"the job waits for a ConfigMap of these files: {command}")
        for option, item in self._line.every("archives", "cacheArchive"):
            self._archive(option, item)

    def _archive(self, option: str, item: str) -> None:
        path, _, name = item.partition("#")
        if not _S3.match(path) and not (_HDFS.match(path) and self._cluster is not None):
            raise Unconvertible(f"-{option}", f"{path} cannot be fetched: put it into S3, and name its URL")
        if self._cluster is not None:
            url = _S3.sub("s3a://", path, count=1)
            self._draft.extend("hadoop.archives", [f"{url}#{name}" if name else url])
        else:
            url = _S3.sub("s3://", path, count=1)
            self._draft.extend("archives", [{"name": name or posixpath.basename(path), "url": url}])

    def _environment(self) -> None:
        for text in self._line.options.get("cmdenv", ()):
            name, _, value = text.partition("=")
            self._draft.extend("env", [{"name": name, "value": literal(value)}])

    def _rest(self) -> None:
        """Keep properties that have no field: on a cluster as settings, else as variables of the commands."""
        for key in properties.SECRETS:
            if self._left.pop(key, None) is not None:
                self._draft.put("storage.s3.secretRef.name", SECRET)
                self._draft.note(f"-D {key}", f"is left out: put it into the Secret {SECRET}")
        endpoint = self._left.pop(properties.ENDPOINT, None)
        if endpoint is not None:
            self._draft.put("storage.s3.endpointURL", endpoint if "://" in endpoint else f"https://{endpoint}")
        if self._cluster is not None:
            if wrong := next((key for key, value in self._left.items() if not is_setting(key, value)), None):
                raise Unconvertible(self._line.where.get(wrong, wrong), "has a control character: remove it")
            self._draft.merge("hadoop.settings", self._left)
            return
        for key in self._left:
            if key.startswith(properties.OF_HADOOP):
                self._draft.note(self._line.where.get(key, key), "changes nothing but a variable of the commands")
        self._draft.merge("conf", self._left)

    def _storage(self) -> None:
        if any(_S3.match(url) for url in _urls(self._draft.spec)):
            self._draft.put("storage.s3.secretRef.name", SECRET)
        if self._draft.get("storage.s3.secretRef"):
            self._draft.note("s3://", f"the Secret {SECRET} needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")

    def _finish(self) -> Converted:
        spec = {field: self._draft.spec[field] for field in _FIELDS if field in self._draft.spec}
        try:
            MRJobSpec.model_validate(spec)
        except pydantic.ValidationError as error:
            for each in error.errors():
                self._draft.note(".".join(map(str, each["loc"])), f"{each['msg']}: correct it")
            return self._draft.refuse()
        manifest = {
            "apiVersion": names.API_VERSION,
            "kind": mrjob_names.KIND,
            "metadata": {"name": self._name},
            "spec": spec,
        }
        return Converted(manifest=manifest, notes=tuple(self._draft.notes))


def _command(option: str, text: str) -> list[str]:
    if _JAVA.fullmatch(text) or text == _AGGREGATE:
        raise Unconvertible(option, f"{text} is a class of Java: write a command that does the same")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise Unconvertible(option, f"{error}: close the quotes") from error
    if not words:
        raise Unconvertible(option, "is empty: name a command")
    return words


def _urls(spec: dict[str, Any]) -> Iterator[str]:
    yield from (*spec["input"], spec["output"])
    for each in (*spec.get("files", ()), *spec.get("archives", ())):
        yield each.get("url", "")
    yield from spec.get("hadoop", {}).get("archives", ())


def object_name(text: str) -> str:
    """Return a name for a job: that of Hadoop may have spaces, dots and capitals, and begin with a digit."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-")
    return name if name[:1].isalpha() else f"job-{name}".strip("-")
