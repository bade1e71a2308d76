"""`helm test`: one replica leads, and task pods can reach it by its Service, by name, over TLS that they trust."""

# ruff: noqa: INP001, T201 - a script that the chart mounts, and its output is what `helm test --logs` shows
import http.client
import pathlib
import ssl
import sys
import time
import urllib.request

NAMESPACE = sys.argv[1]
AUTHORITIES = pathlib.Path("/var/run/boathouse/ca")
PATIENCE_S = 60
TIMEOUT_S = 5


def metrics() -> None:
    """Check that the metrics Service answers."""
    url = f"http://boathouse-metrics.{NAMESPACE}.svc:8080/metrics"
    text = urllib.request.urlopen(url, timeout=TIMEOUT_S).read().decode()
    assert "boathouse_build_info" in text, f"{url} shows no boathouse_build_info"


def progress() -> None:
    """Check that the leader has a certificate of a published authority, and rejects requests without a token."""
    host = f"boathouse-progress.{NAMESPACE}.svc"
    published = "".join(path.read_text() for path in sorted(AUTHORITIES.glob("*.crt")))
    assert published, "no replica has published its authority in the ConfigMap boathouse-progress-ca"
    trusted = ssl.create_default_context(cadata=published)
    connection = http.client.HTTPSConnection(host, context=trusted, timeout=TIMEOUT_S)
    connection.request("POST", f"/v1/jobs/{NAMESPACE}/0/tasks/test/report", "{}", {"Content-Type": "application/json"})
    status = connection.getresponse().status
    assert status == http.client.UNAUTHORIZED, f"{host} answered {status}, not 401, to a report without a token"


def main() -> int:
    """Try each check until it holds, or say why it does not."""
    for check in (metrics, progress):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                check()
            except (OSError, AssertionError, http.client.HTTPException) as error:
                if time.monotonic() > deadline:
                    print(f"FAILED {check.__doc__} {error}")
                    return 1
                time.sleep(1)
            else:
                print(f"ok     {check.__doc__}")
                break
    return 0


if __name__ == "__main__":
    sys.exit(main())
