"""The object storage of a spec as a file system of Hadoop, for clients of clusters and for Spark. Pure."""

from typing import Final

from boathouse.resources.pod_environment import S3, S3_KEYS, S3_TOKEN

_PACKAGE: Final = "org.apache.hadoop.fs.s3a"
_KEYS: Final = ("fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.session.token")
PROVIDER: Final = f"{_PACKAGE}.TemporaryAWSCredentialsProvider,{_PACKAGE}.SimpleAWSCredentialsProvider"
"""Classes that find the keys in `secret_settings`: the first if there is a token, else the second."""


def settings(s3: S3, provider: str) -> dict[str, str]:
    """Return the settings by which s3a:// and s3:// URLs reach the storage, without its keys.

    Args:
        s3: The storage.
        provider: Class that finds the keys, or several that S3A tries in turn. Unused without a Secret:
            requests are unsigned.
    """
    found = {
        "fs.s3.impl": f"{_PACKAGE}.S3AFileSystem",
        "fs.s3a.aws.credentials.provider": provider if s3.secret_ref else f"{_PACKAGE}.AnonymousAWSCredentialsProvider",
        "fs.s3a.endpoint.region": s3.region,
    }
    if s3.endpoint_url:
        found |= {
            "fs.s3a.endpoint": s3.endpoint_url,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "true" if s3.endpoint_url.startswith("https://") else "false",
        }
    return found


def secret_settings(s3: S3) -> dict[str, str]:
    """Return the variables with the keys by the settings that get their values where only the client reads them."""
    return dict(zip(_KEYS, (*S3_KEYS, S3_TOKEN), strict=True)) if s3.secret_ref else {}
