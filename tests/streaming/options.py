"""What a field of an MRJob is in Hadoop Streaming: the arguments of the job that should write the same bytes."""

from collections.abc import Iterator, Mapping
from typing import Any

_PROPERTIES = {
    "numReduceTasks": "mapreduce.job.reduces",
    "recordDelimiter": "textinputformat.record.delimiter",
    "linesPerMap": "mapreduce.input.lineinputformat.linespermap",
    "keyValueSeparator": "mapreduce.input.keyvaluelinerecordreader.key.value.separator",
    "mapInputIgnoreKey": "stream.map.input.ignoreKey",
    "mapInputFieldSeparator": "stream.map.input.field.separator",
    "mapOutputFieldSeparator": "stream.map.output.field.separator",
    "numMapOutputKeyFields": "stream.num.map.output.key.fields",
    "mapOutputKeyFieldSeparator": "mapreduce.map.output.key.field.separator",
    "reduceInputFieldSeparator": "stream.reduce.input.field.separator",
    "reduceOutputFieldSeparator": "stream.reduce.output.field.separator",
    "numReduceOutputKeyFields": "stream.num.reduce.output.key.fields",
    "outputSeparator": "mapreduce.output.textoutputformat.separator",
    "nonZeroExitIsFailure": "stream.non.zero.exit.is.failure",
    "queue": "mapreduce.job.queuename",
}
_LIB = "org.apache.hadoop.mapred.lib"
_INPUT_FORMATS = {
    "NLineInputFormat": f"{_LIB}.NLineInputFormat",
    "KeyValueTextInputFormat": "org.apache.hadoop.mapred.KeyValueTextInputFormat",
}
_CODECS = {
    "gzip": "org.apache.hadoop.io.compress.GzipCodec",
    "bzip2": "org.apache.hadoop.io.compress.BZip2Codec",
    "deflate": "org.apache.hadoop.io.compress.DefaultCodec",
    "snappy": "org.apache.hadoop.io.compress.SnappyCodec",
}


def properties(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties of a job (-D)."""
    found = {key: _text(spec[field]) for field, key in _PROPERTIES.items() if field in spec}
    found |= spec.get("conf", {})
    if "reducer" not in spec:
        found["mapreduce.job.reduces"] = "0"
    if spec.get("keyOnlyOutput"):
        found[f"stream.{'reduce' if 'reducer' in spec else 'map'}.output"] = "keyonlytext"
    if "outputCompression" in spec:
        found["mapreduce.output.fileoutputformat.compress"] = "true"
        found["mapreduce.output.fileoutputformat.compress.codec"] = _CODECS[spec["outputCompression"]]
    if "options" in spec.get("partitioner", {}):
        found["mapreduce.partition.keypartitioner.options"] = spec["partitioner"]["options"]
    if "comparator" in spec:
        found["mapreduce.job.output.key.comparator.class"] = f"{_LIB}.KeyFieldBasedComparator"
        found["mapreduce.partition.keycomparator.options"] = spec["comparator"]["options"]
    return found


def generic(spec: Mapping[str, Any], folder: str) -> Iterator[str]:
    """Yield the generic options, which come first."""
    archives = [
        f"file://{folder}/{archive['url'].rpartition('/')[2]}#{archive['name']}" for archive in spec.get("archives", ())
    ]
    if archives:
        yield from ("-archives", ",".join(archives))


def streaming(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options of Hadoop Streaming, without its commands, input and output."""
    if spec.get("inputFormat") in _INPUT_FORMATS:
        yield from ("-inputformat", _INPUT_FORMATS[spec["inputFormat"]])
    if "partitioner" in spec:
        yield from ("-partitioner", f"{_LIB}.{spec['partitioner']['type']}")
    if spec.get("lazyOutput"):
        yield "-lazyOutput"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
