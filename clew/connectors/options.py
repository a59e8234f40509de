"""Storage options: written once in fsspec's names, translated for Lance and for boto3.

Whoever writes `key=value` on a command line gets the types that fsspec expects; whoever sets `AWS_ENDPOINT_URL` needs
nothing else for an S3 server on loopback.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from clew.errors import OptionError

#: Options whose value stays text, however much it looks like a number or a truth value.
_TEXT = frozenset(
    (
        *("key", "secret", "token", "username", "user", "password", "passphrase", "profile", "project", "bucket"),
        *("account_name", "account_key", "sas_token", "connection_string", "client_id", "client_secret", "tenant_id"),
        *("host", "region", "region_name", "endpoint_url"),
    )
)
_INTEGER = re.compile(r"-?[0-9]{1,18}\Z")
_S3_KINDS = frozenset({"s3", "s3a"})
_GCS_KINDS = frozenset({"gs", "gcs"})
_AZURE_KINDS = frozenset({"az", "abfs", "abfss", "adl"})
#: The region that S3 servers other than AWS are addressed with.
_DEFAULT_REGION = "us-east-1"


def parse_storage_options(options: Mapping[str, Any] | Iterable[str] | None) -> dict[str, Any]:
    """Storage options from `key=value` texts or from a mapping whose values may be texts.

    `anon=true` is a truth value, `port=22` a number, `client_kwargs={"region_name": "eu-west-1"}` (JSON) and
    `client_kwargs.region_name=eu-west-1` are both the same nested option. Names and secrets stay text.

    Raises:
        OptionError: an item has no `=`, or JSON in it is broken.
    """
    if options is None:
        return {}
    if isinstance(options, Mapping):
        pairs = list(options.items())
    else:
        pairs = []
        for item in options:
            name, separator, value = item.partition("=")
            if not separator or not name.strip():
                raise OptionError(f"The storage option {item!r} is not of the form key=value.")
            pairs.append((name.strip(), value))
    parsed: dict[str, Any] = {}
    for name, value in pairs:
        folders = str(name).split(".")
        at = parsed
        for folder in folders[:-1]:
            inner = at.get(folder)
            at[folder] = inner = dict(inner) if isinstance(inner, Mapping) else {}
            at = inner
        leaf = folders[-1]
        worth = _value(leaf, value) if isinstance(value, str) else value
        if isinstance(worth, Mapping) and isinstance(at.get(leaf), Mapping):
            worth = {**at[leaf], **worth}
        at[leaf] = worth
    return parsed


def _value(name: str, text: str) -> Any:
    stripped = text.strip()
    if stripped[:1] in ("{", "["):
        try:
            return json.loads(stripped)
        except ValueError as error:
            raise OptionError(f"The storage option {name} looks like JSON but is not: {error}.") from None
    if name in _TEXT:
        return text
    lowered = stripped.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered in ("none", "null"):
        return None
    return int(stripped) if _INTEGER.match(stripped) else text


def environment_endpoint() -> str | None:
    """The S3 endpoint of the environment (`AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`), if there is one."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


@dataclass(frozen=True, kw_only=True)
class S3Options:
    """What the options and the environment say about an S3 service."""

    endpoint: str | None
    region: str | None
    key: str | None
    secret: str | None
    token: str | None
    profile: str | None
    anonymous: bool
    verify: bool | str | None  # False, or the path of a bundle of certificates
    path_style: bool
    requester_pays: bool
    write_arguments: Mapping[str, Any]  # ServerSideEncryption and such, for every write
    config: Mapping[str, Any]  # further botocore Config arguments

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> S3Options:
        """Read s3fs's names (and botocore's, below `client_kwargs` and `config_kwargs`)."""
        client: Mapping[str, Any] = options.get("client_kwargs") or {}
        config: dict[str, Any] = dict(options.get("config_kwargs") or {})
        endpoint = options.get("endpoint_url") or client.get("endpoint_url") or environment_endpoint()
        if options.get("use_ssl") is False and endpoint and "://" not in endpoint:
            endpoint = f"http://{endpoint}"
        elif endpoint and "://" not in endpoint:
            endpoint = f"https://{endpoint}"
        region = (
            client.get("region_name")
            or options.get("region_name")
            or options.get("region")
            or os.environ.get("AWS_REGION")
            or os.environ.get("AWS_DEFAULT_REGION")
            or (_DEFAULT_REGION if endpoint else None)
        )
        style = (config.get("s3") or {}).get("addressing_style")
        verify = client.get("verify", options.get("verify"))
        return cls(
            endpoint=endpoint,
            region=region,
            key=options.get("key") or options.get("username") or client.get("aws_access_key_id"),
            secret=options.get("secret") or options.get("password") or client.get("aws_secret_access_key"),
            token=options.get("token") or client.get("aws_session_token"),
            profile=options.get("profile"),
            anonymous=bool(options.get("anon", False)),
            verify=verify,
            path_style=style == "path" if style else endpoint is not None,
            requester_pays=bool(options.get("requester_pays", False)),
            write_arguments=dict(options.get("s3_additional_kwargs") or {}),
            config=config,
        )


def boto3_options(options: Mapping[str, Any], service: str = "s3") -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of `boto3.session.Session(**…)` and of `.client(service, **…)` for options in fsspec's names.

    Retries are off: clew retries by itself, with jitter, and knows which answers may be repeated.
    The endpoint of the options is that of S3; for another service (`sqs`) the environment's is left to botocore.
    """
    s3 = S3Options.of(options)
    session: dict[str, Any] = {"profile_name": s3.profile} if s3.profile else {}
    config: dict[str, Any] = {
        "retries": {"total_max_attempts": 1, "mode": "standard"},
        "max_pool_connections": 32,
        "connect_timeout": 10,
        "read_timeout": 60,
        # Checksums that newer SDKs add to every request are refused by some S3 services.
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
        **{name: value for name, value in s3.config.items() if name != "s3"},
    }
    if service == "s3":
        style = "path" if s3.path_style else "auto"
        config["s3"] = {"addressing_style": style, **(s3.config.get("s3") or {})}
    if s3.anonymous:
        from botocore import UNSIGNED

        config["signature_version"] = UNSIGNED
    from botocore.config import Config

    client: dict[str, Any] = {"config": Config(**config)}
    if s3.endpoint and service == "s3":
        client["endpoint_url"] = s3.endpoint
    if s3.region:
        client["region_name"] = s3.region
    if s3.key and s3.secret and not s3.anonymous:
        client["aws_access_key_id"] = s3.key
        client["aws_secret_access_key"] = s3.secret
        if s3.token:
            client["aws_session_token"] = s3.token
    if s3.verify is not None:
        client["verify"] = s3.verify
    return session, client


def lance_storage_options(options: Mapping[str, Any], kind: str = "s3") -> dict[str, str]:
    """The same options in the names of Lance's object store (all values are text).

    Args:
        options: in fsspec's names.
        kind: the protocol of the place, `s3`, `gs`, `az` or `file` (which needs none).
    """
    if kind in _S3_KINDS:
        return _lance_s3(S3Options.of(options))
    if kind in _GCS_KINDS:
        return _lance_gcs(options)
    if kind in _AZURE_KINDS:
        return _lance_azure(options)
    return {}


def _lance_s3(s3: S3Options) -> dict[str, str]:
    lance: dict[str, str] = {}
    if s3.endpoint:
        lance["aws_endpoint"] = s3.endpoint
        lance["aws_virtual_hosted_style_request"] = "false" if s3.path_style else "true"
        if urlsplit(s3.endpoint).scheme == "http":
            lance["allow_http"] = "true"
    if s3.region:
        lance["aws_region"] = s3.region
    if s3.anonymous:
        lance["aws_skip_signature"] = "true"
    else:
        key, secret, token = s3.key, s3.secret, s3.token
        if s3.profile and not key:
            key, secret, token = _profile_credentials(s3.profile)
        if key and secret:
            lance["aws_access_key_id"] = key
            lance["aws_secret_access_key"] = secret
            if token:
                lance["aws_session_token"] = token
    if s3.verify is False:
        lance["allow_invalid_certificates"] = "true"
    if s3.requester_pays:
        lance["aws_request_payer"] = "true"
    encryption = s3.write_arguments.get("ServerSideEncryption")
    if encryption:
        lance["aws_server_side_encryption"] = str(encryption)
        if s3.write_arguments.get("SSEKMSKeyId"):
            lance["aws_sse_kms_key_id"] = str(s3.write_arguments["SSEKMSKeyId"])
    return lance


def _profile_credentials(profile: str) -> tuple[str | None, str | None, str | None]:
    import boto3

    credentials = boto3.session.Session(profile_name=profile).get_credentials()
    if credentials is None:
        return None, None, None
    frozen = credentials.get_frozen_credentials()
    return frozen.access_key, frozen.secret_key, frozen.token


def _lance_gcs(options: Mapping[str, Any]) -> dict[str, str]:
    lance: dict[str, str] = {}
    token = options.get("token")
    if isinstance(token, Mapping):
        lance["google_service_account_key"] = json.dumps(dict(token))
    elif isinstance(token, str) and token == "anon":
        lance["google_skip_signature"] = "true"
    elif isinstance(token, str) and token.endswith(".json"):
        lance["google_service_account"] = token
    endpoint = options.get("endpoint_url") or os.environ.get("STORAGE_EMULATOR_HOST")
    if endpoint:
        lance["google_base_url"] = str(endpoint)
        if str(endpoint).startswith("http://"):
            lance["allow_http"] = "true"
    return lance


_AZURE_NAMES = {
    "account_name": "azure_storage_account_name",
    "account_key": "azure_storage_account_key",
    "sas_token": "azure_storage_sas_token",
    "client_id": "azure_client_id",
    "client_secret": "azure_client_secret",
    "tenant_id": "azure_tenant_id",
}


def _lance_azure(options: Mapping[str, Any]) -> dict[str, str]:
    merged: dict[str, Any] = dict(options)
    text = options.get("connection_string")
    if isinstance(text, str):
        parts = dict(part.partition("=")[::2] for part in text.split(";") if part)
        merged.setdefault("account_name", parts.get("AccountName"))
        merged.setdefault("account_key", parts.get("AccountKey"))
        merged.setdefault("sas_token", parts.get("SharedAccessSignature"))
        merged.setdefault("endpoint_url", parts.get("BlobEndpoint"))
    lance = {ours: str(merged[theirs]) for theirs, ours in _AZURE_NAMES.items() if merged.get(theirs)}
    if merged.get("anon") is True and not merged.get("account_key"):
        lance["azure_skip_signature"] = "true"
    endpoint = merged.get("endpoint_url")
    if endpoint:
        lance["azure_endpoint"] = str(endpoint)
        if str(endpoint).startswith("http://"):
            lance["allow_http"] = "true"
    return lance
