"""S3 options: one name for each, from what the caller gave and from the AWS_* variables."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.errors import BadRequest

# The names people use for one option; the first is the one that Lance and obstore both take.
_NAMES = (
    ("aws_access_key_id", "access_key_id"),
    ("aws_secret_access_key", "secret_access_key"),
    ("aws_session_token", "session_token", "aws_token", "token"),
    ("aws_region", "region", "aws_default_region", "default_region"),
    ("aws_endpoint", "endpoint", "aws_endpoint_url", "endpoint_url", "aws_endpoint_url_s3"),
    ("allow_http", "aws_allow_http"),
    ("aws_virtual_hosted_style_request", "virtual_hosted_style_request"),
)
_CANONICAL = {alias: names[0] for names in _NAMES for alias in names}
_CREDENTIALS = {"aws_access_key_id", "aws_secret_access_key", "aws_session_token"}

# In the order of precedence where several name one option.
_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT",
    "AWS_ALLOW_HTTP",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
)


def s3_options(given: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The options of an S3 root under their canonical names; what is given wins over the environment."""
    options: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(value, str):
            raise BadRequest(f"storage option {name} must be text, not {type(value).__name__}")
        canonical = _CANONICAL.get(name.lower(), name.lower())
        if options.setdefault(canonical, value) != value:
            raise BadRequest(f"storage option {canonical} is given twice with different values; keep one")
    own_credentials = not _CREDENTIALS.isdisjoint(options)
    for variable in _VARIABLES:
        name = _CANONICAL[variable.lower()]
        # Credentials go together: a key of one source does not fit the session token of another.
        if environ.get(variable) and not (own_credentials and name in _CREDENTIALS):
            options.setdefault(name, environ[variable])
    if options.get("aws_endpoint", "").startswith("http://"):
        options.setdefault("allow_http", "true")
    return options
