"""Command lines of Hadoop as MRJobs: of Hadoop Streaming, or of another jar, which runs on an MRCluster. Pure."""

import fnmatch
import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from boathouse.resources.base import is_hadoop_setting
from boathouse.resources.mrjob.status import MRJOB
from boathouse.resources.pod_environment import literal
from boathouse_cli.conversion import command_lines, hadoop_options
from boathouse_cli.conversion.draft import Carried, Converted, Draft, Unconvertible, is_secret
from boathouse_cli.conversion.pod_fields import dashed, put_queue

_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def without_escapes(option: str, path: str) -> str:
    r"""Return a path without backslashes: `\*` is `[*]`, and before other characters they say nothing."""
    if "\\" not in path:
        return path
    if _ESCAPED.sub("", path).endswith("\\"):
        raise Unconvertible(option, f"{path} ends with a backslash, which Hadoop refuses: remove it")

    def said(match: re.Match[str]) -> str:
        char = match[1]
        if char in "{},\\":
            raise Unconvertible(option, f"{path}: an MRJob cannot escape {char}: write ? instead, or rename the files")
        return f"[{char}]" if char in "*?[" else char

    if any("\\" in match for match in re.findall(r"(?<!\\)\[[^\]]*\]", path)):
        raise Unconvertible(option, f"{path}: an MRJob has no escapes in brackets: write the characters without them")
    return _ESCAPED.sub(said, path)


SECRET: Final = "s3-credentials"  # noqa: S105 - the name of a Secret
_KEY_ONLY: Final = "keyonlytext"
_NOT_TEXT: Final = frozenset({"rawbytes", "typedbytes", _KEY_ONLY})
_NONE: Final = "NONE"
_BY_FIELDS: Final = "KeyFieldBasedPartitioner"
_OF_REDUCES: Final = frozenset({
    "comparator.options", "reduceInputFieldSeparator", "reduceOutputFieldSeparator", "numReduceOutputKeyFields",
})  # fmt: skip
_OF_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "linesPerMap": ("NLineInputFormat",),
    "keyValueSeparator": ("KeyValueTextInputFormat",),
    "recordDelimiter": ("TextInputFormat", "CombineTextInputFormat"),
}
_STAGES: Final = ("mapper", "combiner", "reducer")
_S3: Final = re.compile("s3[an]?://")
_HDFS: Final = re.compile("hdfs://([a-z]([-a-z0-9]*[a-z0-9])?)/")


class _Job:
    def __init__(self, draft: Draft, line: hadoop_options.Line, cluster: str | None) -> None:
        self._draft, self._line, self._cluster = draft, line, cluster
        self._s3 = "s3://" if cluster is None else "s3a://"
        self._left = dict(line.properties)
        self._name = object_name(self._left.pop(hadoop_options.NAME, "streaming"))

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
        sources = [*draft.spec.get("files", ()), *draft.spec.get("archives", ())]
        urls = [*draft.spec["input"], draft.spec["output"], *(source.get("url", "") for source in sources)]
        if any(map(_S3.match, [*urls, *draft.spec.get("hadoop", {}).get("archives", ())])):
            draft.put("storage.s3.secretRef.name", SECRET)
        if draft.get("storage.s3.secretRef"):
            draft.note("s3://", f"the Secret {SECRET} needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        draft.metadata["name"] = self._name
        return draft.finish()

    def _commands(self) -> None:
        line, draft = self._line, self._draft
        files = [path for _, path in line.every("file")]
        for kind in _STAGES:
            given = [text for text in line.options.get(kind, ()) if kind != "reducer" or text != _NONE]
            if commands := [_command(f"-{kind}", hadoop_options.shipped(text, files)) for text in given]:
                draft.put(f"{kind}.command", commands[0])
        if (reduces := line.first("numReduceTasks")) is not None:
            self._left["mapreduce.job.reduces"] = reduces
        if line.first("reducer") == _NONE or self._left.get("mapreduce.job.reduces") == "0":
            self._left.pop("mapreduce.job.reduces", None)
            for unused in ("reducer", "combiner"):
                draft.spec.pop(unused, None)
        elif not draft.get("reducer"):
            draft.put("reducer.command", ["cat"])  # IdentityReducer

    def _classes(self) -> None:
        if found := _class("-inputformat", self._line.first("inputformat"), hadoop_options.INPUT_FORMATS):
            self._draft.put("inputFormat", found)
        if found == "CombineTextInputFormat":  # streaming knows no default of it, but for TextInputFormat alone
            self._left.setdefault("stream.map.input.ignoreKey", "false")
        if self._line.first("inputreader") is not None:
            advice = "records of XML have no counterpart: cut the input with textinputformat.record.delimiter"
            raise Unconvertible("-inputreader", advice)
        _class("-outputformat", self._line.first("outputformat"), ("TextOutputFormat",))
        chosen = self._left.pop(hadoop_options.PARTITIONER_CLASS, None)
        chosen = self._line.first("partitioner") or chosen
        if partitioner := _class("-partitioner", chosen, ("HashPartitioner", _BY_FIELDS)):
            self._draft.put("partitioner.type", partitioner)
        fields = self._left.pop(hadoop_options.PARTITION_FIELDS, None)
        if partitioner != _BY_FIELDS:
            self._left.pop(hadoop_options.PARTITION_OPTIONS, None)
        elif fields is not None:  # Hadoop prefers it
            self._left[hadoop_options.PARTITION_OPTIONS] = f"-k1,{fields}"
        comparator = self._left.pop(hadoop_options.COMPARATOR_CLASS, None)
        if _class(f"-D {hadoop_options.COMPARATOR_CLASS}", comparator, ("KeyFieldBasedComparator",)) is None:
            self._left.pop("mapreduce.partition.keycomparator.options", None)

    def _output(self) -> None:
        draft, has_reduces = self._draft, "reducer" in self._draft.spec
        last = "stream.reduce.output" if has_reduces else "stream.map.output"
        of_all = self._line.first("io")
        for key in ("stream.map.input", "stream.map.output", "stream.reduce.input", "stream.reduce.output"):
            given = self._left.pop(key, "text")
            kind = (given if of_all is None else of_all).lower()
            if kind == _KEY_ONLY and key == last:
                draft.put("keyOnlyOutput", True)
            elif kind in _NOT_TEXT and (has_reduces or key.startswith("stream.map")):
                advice = "commands read and write lines: encode binary values, such as base64"
                raise Unconvertible(f"-D {key}" if of_all is None else "-io", advice)
        compresses = self._left.pop(hadoop_options.COMPRESS, "false").lower() == "true"
        codec = self._left.pop(hadoop_options.CODEC, "DefaultCodec")
        if compresses and (found := hadoop_options.CODECS.get(hadoop_options.short(codec))):
            draft.put("outputCompression", found)
        elif compresses:
            draft.note(
                f"-D {hadoop_options.CODEC}", f"{codec} has no counterpart: name {', '.join(hadoop_options.CODECS)}"
            )
        if "lazyOutput" in self._line.options:
            draft.put("lazyOutput", True)
        if self._cluster is None and self._left.pop("mapreduce.job.ubertask.enable", "false").lower() == "true":
            draft.put("uber", {})

    def _fields(self) -> None:
        self._left.pop(hadoop_options.RECURSIVE, None)
        queue = {hadoop_options.QUEUE} if self._cluster is not None else set()  # YARN's, not Boathouse's
        for key in [key for key in self._left if key in hadoop_options.FIELDS.keys() - queue]:
            field, read = hadoop_options.FIELDS[key]
            text, where = self._left.pop(key), self._line.where.get(key, key)
            if key == hadoop_options.QUEUE:
                put_queue(self._draft, where, text)
            elif self._has_effect(field):
                try:
                    self._draft.put(field, read(text))
                except (ValueError, KeyError):
                    raise Unconvertible(where, f"{text!r} cannot be read: correct it") from None

    def _has_effect(self, field: str) -> bool:
        """Return whether the field may be set: Hadoop ignores what is for another format, or for missing reduces."""
        spec = self._draft.spec
        if field in _OF_FORMATS:
            return spec.get("inputFormat", "TextInputFormat") in _OF_FORMATS[field]
        if field == "outputSeparator":
            return "keyOnlyOutput" not in spec
        stage = "reducer" if field in _OF_REDUCES else field.partition(".")[0]
        return stage not in {"mapper", "reducer"} or stage in spec

    def _data(self) -> None:
        inputs, output = self._line.every("input"), self._line.first("output")
        if not inputs or output is None:
            missing = "output" if inputs else "input"
            raise Unconvertible(f"-{missing}", f"is missing: name the {missing}")
        self._draft.put("input", [self._data_url(option, item) for option, item in inputs])
        self._draft.put("output", self._data_url("output", output))

    def _data_url(self, option: str, text: str) -> str:
        url = text if option == "output" or self._cluster is not None else without_escapes(f"-{option}", text)
        if _S3.match(url):
            return _S3.sub(self._s3, url, count=1)
        if url.startswith("hdfs:///"):
            url = url.removeprefix("hdfs://")
        if _HDFS.match(url) or (url.startswith("/") and self._cluster is not None):
            return url
        raise Unconvertible(
            f"-{option}",
            f"{url} cannot be read by tasks: write s3://BUCKET/PATH or hdfs://CLUSTER/PATH"
            if self._cluster is None
            else f"{url} is no path: write /PATH, s3a://BUCKET/PATH, or hdfs://CLUSTER/PATH of an MRCluster",
        )

    def _files(self) -> None:
        local = []
        for option, item in self._line.every("files", "file", "cacheFile"):
            path, _, name = item.partition("#")
            name = name or posixpath.basename(path)
            if not name:
                raise Unconvertible(f"-{option}", f"{item} is a folder: put it into an archive, and use -archives")
            if any(file["name"] == name for file in self._draft.get("files") or ()):
                self._draft.note(f"-{option}", f"another file has the name {name}: {item} replaces it; rename one")
            if _S3.match(path):
                self._draft.extend("files", [{"name": name, "url": _S3.sub("s3://", path, count=1)}])
            elif "://" in path and not path.startswith("file:"):
                raise Unconvertible(f"-{option}", f"{path} cannot be fetched: put it into S3 or into a ConfigMap")
            else:
                local.append(f"--from-file={name}={path.removeprefix('file://')}")
                key = {"name": f"{self._name}-files", "key": name}
                if carried := self._draft.carried:
                    carried.add(path, name)
                    key["name"] = carried.config_map_name(self._name)
                self._draft.extend("files", [{"name": name, "configMapKeyRef": key}])
        if local and self._draft.carried is None:
            command = shlex.join(["kubectl", "create", "configmap", f"{self._name}-files", *local])
            self._draft.note("-files", f"the job waits for a ConfigMap of these files: {command}")
        for option, item in self._line.every("archives", "cacheArchive"):
            self._archive(option, item)
        self._note_paths()

    def _note_paths(self) -> None:
        """Note words of commands that are a path of a file, which is in the working folder of tasks."""
        names_ = {file["name"] for file in self._draft.get("files") or ()}
        for kind in _STAGES:
            for word in self._draft.get(f"{kind}.command") or ():
                if "/" in word.removeprefix("./") and (name := posixpath.basename(word)) in names_:
                    self._draft.note(f"-{kind}", f"{word} is not in the tasks' image, but {name} is shipped: name that")

    def _archive(self, option: str, item: str) -> None:
        path, _, name = item.partition("#")
        if not _S3.match(path) and not (_HDFS.match(path) and self._cluster is not None):
            raise Unconvertible(f"-{option}", f"{path} cannot be fetched: put it into S3, and name its URL")
        url = _S3.sub(self._s3, path, count=1)
        if self._cluster is not None:
            self._draft.extend("hadoop.archives", [f"{url}#{name}" if name else url])
        else:
            self._draft.extend("archives", [{"name": name or posixpath.basename(path), "url": url}])

    def _environment(self) -> None:
        found: dict[str, str] = {}
        for text in self._line.options.get("cmdenv", ()):
            for variable in text.split(" "):  # as PipeMapRed does
                name, equals, value = variable.partition("=")
                if equals:
                    found[name] = value
                elif variable:
                    self._draft.note("-cmdenv", f"Hadoop ignores {variable!r}: write NAME=VALUE, without spaces")
        self._draft.extend("env", [{"name": name, "value": literal(value)} for name, value in found.items()])

    def _rest(self) -> None:
        """Keep properties that have no field: on a cluster as settings, else as variables of the commands."""
        for key in [key for key in self._left if key.startswith("fs.") and is_secret(key)]:
            del self._left[key]
            self._draft.put("storage.s3.secretRef.name", SECRET)
            self._draft.note(f"-D {key}", f"is left out: put it into the Secret {SECRET}")
        if (endpoint := self._left.pop("fs.s3a.endpoint", None)) is not None:
            self._draft.put("storage.s3.endpointURL", endpoint if "://" in endpoint else f"https://{endpoint}")
        if self._cluster is not None:
            if wrong := next((key for key, value in self._left.items() if not is_hadoop_setting(key, value)), None):
                raise Unconvertible(self._line.where.get(wrong, wrong), "has a control character: remove it")
            self._draft.merge("hadoop.settings", self._left)
            return
        for key in filter(hadoop_options.is_of_hadoop, self._left):
            self._draft.note(self._line.where.get(key, key), "changes nothing but a variable of the commands")
        self._draft.merge("conf", self._left)


def _class(where: str, name: str | None, known: Iterable[str]) -> str | None:
    if name is None or hadoop_options.short(name) in known:
        return name and hadoop_options.short(name)
    raise Unconvertible(where, f"{name} has no counterpart: there are {', '.join(known)}")


def _command(option: str, text: str) -> list[str]:
    if re.fullmatch(r"([a-z]\w*\.)+[A-Z]\w*", text) or text == "aggregate":
        raise Unconvertible(option, f"{text} is a class of Java: write a command that does the same")
    try:
        if words := hadoop_options.split_command(text):
            return words
    except ValueError as error:
        raise Unconvertible(option, f"{error}: close the quotes") from error
    raise Unconvertible(option, "is empty: name a command")


def object_name(text: str) -> str:
    """Return a name for a job: that of Hadoop may have spaces, dots and capitals, and begin with a digit."""
    name = dashed(text, 40)
    return name if name[:1].isalpha() else f"job-{name}".strip("-")


_STREAMING_JARS: Final = (
    "hadoop-streaming.jar",
    "hadoop-streaming-3.4.2.jar",
    "hadoop-3.4.2-streaming.jar",
    "hadoop-0.20-mapreduce/contrib/streaming/hadoop-streaming-mr1.jar",
)
"""How distributions call it."""
_WITH_VALUE: Final = ("--config", "--loglevel", "--buildpaths", "--hostnames", "--hosts", "--workers")


def is_line(words: Sequence[str]) -> bool:
    """Return whether a command line runs a program of Hadoop."""
    at = command_lines.find(words)
    return at is not None and command_lines.is_hadoop(words[at])


def convert(words: Sequence[str], cluster: str | None, carried: Carried | None = None) -> Converted:
    """Return the MRJob of a command line; jobs of Hadoop Streaming need no cluster.

    All words after another jar are arguments, as for `hadoop jar`: the first one is the class if the jar names none.
    """
    at = command_lines.find(words) or 0
    draft = Draft(" ".join(words[at : at + 2]), MRJOB, carried)
    command_lines.note_before(draft, words[:at])
    try:
        match _without_options(draft, words[at + 1 :]):
            case ["jar", jar, *options] if not _is_streaming_jar(jar):
                return _of_jar(draft, jar, options, cluster)
            case ["jar", _, *options] | ["streaming", *options]:
                return _Job(draft, hadoop_options.parse(draft, options), cluster).made()
            case _:
                return draft.refuse(Unconvertible("jar", "only `hadoop jar URL ARGS...` can be submitted"))
    except Unconvertible as why:
        return draft.refuse(why)


def _without_options(draft: Draft, words: Sequence[str]) -> Sequence[str]:
    """Return the words after the options of the program itself, such as --config."""
    while words and words[0].startswith("--"):
        if words[0] == "--config":
            draft.note("--config", "is not read: write its properties with -D")
        elif words[0] not in ("--debug", "--daemon", *_WITH_VALUE):
            raise Unconvertible(words[0], "is no option of this program: correct it")
        words = words[2 if words[0] in _WITH_VALUE else 1 :]
    return words


def _is_streaming_jar(word: str) -> bool:
    """Return whether it is the jar of Hadoop Streaming, with a version before or after, or as a glob."""
    jar = posixpath.basename(word)
    return re.fullmatch(r"hadoop.*streaming.*\.jar", jar) is not None or (
        re.search(r"[*?\[]", jar) is not None
        and any(fnmatch.fnmatchcase(posixpath.basename(known), jar) for known in _STREAMING_JARS)
    )


def _of_jar(draft: Draft, jar: str, arguments: list[str], cluster: str | None) -> Converted:
    if cluster is None:
        raise Unconvertible(jar, "a jar needs a Hadoop cluster: pass --cluster NAME")
    url = f"local://{jar}" if jar.startswith("/") else jar
    if not re.match("(s3|local|hdfs)://", url):
        raise Unconvertible(
            jar,
            "it is a file of this machine: put it into S3 or HDFS and name its URL, or name its absolute path in the "
            "cluster's image",
        )
    draft.metadata["name"] = object_name(posixpath.basename(jar).removesuffix(".jar"))
    draft.put("clusterRef.name", cluster)
    draft.put("jar.url", url)
    if arguments:
        draft.put("jar.arguments", arguments)
    return draft.finish()
