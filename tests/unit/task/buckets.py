"""An S3 server that lists the given keys, a few at a time, and tells their sizes."""

import contextlib
import http.server
import threading
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qs, quote_plus, unquote, urlsplit
from xml.sax.saxutils import escape

from boathouse_task.contract import S3Config
from boathouse_task.storage import Storage

PAGE = 3


class Bucket:
    """Objects by key, and how the server answers.

    Attributes:
        objects: Sizes by key.
        refusals: Status and body of the next answers to LIST.
        is_encoding: Whether the server knows encoding-type.
        asked: Queries of LIST.
        signatures: The header Authorization of each.
    """

    def __init__(self, objects: Mapping[str, int]) -> None:
        self.objects = dict(objects)
        self.refusals: list[tuple[int, bytes]] = []
        self.is_encoding = True
        self.asked: list[dict[str, str]] = []
        self.signatures: list[str | None] = []

    def listing(self, query: dict[str, str]) -> bytes:
        """Return the page of keys that a query names, as S3 does."""
        self.asked.append(query)
        prefix, start = query.get("prefix", ""), query.get("continuation-token", "")
        keys = sorted(key for key in self.objects if key.startswith(prefix) and key > start)
        if "delimiter" in query:
            keys = [key for key in keys if query["delimiter"] not in key[len(prefix) :]]
        encoded = quote_plus if self.is_encoding else escape
        rows = "".join(
            f"<Contents><Key>{encoded(key)}</Key><Size>{self.objects[key]}</Size></Contents>" for key in keys[:PAGE]
        )
        more = f"<NextContinuationToken>{escape(keys[PAGE - 1])}</NextContinuationToken>" if len(keys) > PAGE else ""
        kind = "<EncodingType>url</EncodingType>" if self.is_encoding else ""
        return f"<ListBucketResult xmlns='http://s3/'>{kind}{more}{rows}</ListBucketResult>".encode()


@contextlib.contextmanager
def serving(bucket: Bucket) -> Iterator[str]:
    """Serve the bucket under any name; yield the endpoint."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query, True).items()}
            if "list-type" not in query:
                size = bucket.objects.get(unquote(urlsplit(self.path).path).lstrip("/").partition("/")[2])
                status, body = (404, b"") if size is None else (200, bytes(size))
            elif bucket.refusals:
                status, body = bucket.refusals.pop(0)
            else:
                status, body = 200, bucket.listing(query)
            bucket.signatures.append(self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

        do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, *_arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def storage(bucket: Bucket, *, key: str = "key", retry_s: int = 0) -> Iterator[Storage]:
    """Yield the storage of a task with the bucket."""
    with serving(bucket) as endpoint:
        credentials = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": "canary"} if key else {}
        yield Storage(S3Config(endpoint_url=endpoint), credentials, part_bytes=1 << 20, retry_s=retry_s)
