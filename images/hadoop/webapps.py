"""Write a jar of empty folders for HDFS's web applications.

HDFS's daemons do not start without these folders on the class path. Hadoop has their pages in its distribution, not
in its jars. The REST interfaces, WebHDFS and the metrics need no pages. YARN's pages are in YARN's jars.
"""

from __future__ import annotations

import sys
import zipfile

FOLDERS = ("datanode", "hdfs", "secondary", "static")


def write(path: str) -> None:
    """Write the jar."""
    with zipfile.ZipFile(path, "w") as jar:
        for folder in ("", *(f"{name}/" for name in FOLDERS)):
            jar.writestr(zipfile.ZipInfo(f"webapps/{folder}"), b"")


if __name__ == "__main__":
    write(sys.argv[1])
