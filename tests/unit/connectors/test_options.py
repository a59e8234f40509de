"""Without these, options that work for reading could fail for the index, or a secret become a number."""

from __future__ import annotations

import pytest

from clew.connectors.options import boto3_options, lance_storage_options, parse_storage_options
from clew.errors import OptionError


def test_texts_get_the_types_that_fsspec_expects() -> None:
    parsed = parse_storage_options(
        [
            "anon=true",
            "port=22",
            "key=007",
            "secret=true",
            "endpoint_url=http://127.0.0.1:9000",
            'config_kwargs={"s3": {"addressing_style": "path"}}',
            "client_kwargs.region_name=eu-west-1",
            "client_kwargs.verify=false",
            "path=a=b",
            "timeout=none",
        ]
    )
    assert parsed == {
        "anon": True,
        "port": 22,
        "key": "007",
        "secret": "true",
        "endpoint_url": "http://127.0.0.1:9000",
        "config_kwargs": {"s3": {"addressing_style": "path"}},
        "client_kwargs": {"region_name": "eu-west-1", "verify": False},
        "path": "a=b",
        "timeout": None,
    }


def test_parsed_options_parse_to_themselves() -> None:
    once = parse_storage_options({"client_kwargs": {"region_name": "x"}, "client_kwargs.verify": "false", "key": "1"})
    assert parse_storage_options(once) == once


@pytest.mark.parametrize("bad", ["anon", "=x", 'config_kwargs={"s3": }'])
def test_an_option_that_cannot_be_read_is_named(bad: str) -> None:
    with pytest.raises(OptionError):
        parse_storage_options([bad])


def test_s3_options_become_those_of_lance() -> None:
    options = {"key": "k", "secret": "s", "token": "t", "client_kwargs": {"region_name": "eu-west-1"}}
    assert lance_storage_options(options) == {
        "aws_access_key_id": "k",
        "aws_secret_access_key": "s",
        "aws_session_token": "t",
        "aws_region": "eu-west-1",
    }


def test_an_endpoint_of_the_environment_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    lance = lance_storage_options({})
    assert lance["aws_endpoint"] == "http://127.0.0.1:9000"
    assert lance["allow_http"] == "true"
    assert lance["aws_virtual_hosted_style_request"] == "false"
    assert lance["aws_region"] == "us-east-1"
    _, client = boto3_options({})
    assert client["endpoint_url"] == "http://127.0.0.1:9000"
    assert client["region_name"] == "us-east-1"


def test_an_explicit_endpoint_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    assert lance_storage_options({"endpoint_url": "https://s3.example"})["aws_endpoint"] == "https://s3.example"
    nested = {"client_kwargs": {"endpoint_url": "http://other"}}
    assert boto3_options(nested)[1]["endpoint_url"] == "http://other"


def test_anonymous_reading_sends_no_credentials() -> None:
    from botocore import UNSIGNED

    lance = lance_storage_options({"anon": True, "key": "k", "secret": "s"})
    assert lance["aws_skip_signature"] == "true"
    assert "aws_access_key_id" not in lance
    _, client = boto3_options({"anon": True, "key": "k", "secret": "s"})
    assert client["config"].signature_version is UNSIGNED
    assert "aws_access_key_id" not in client


def test_encryption_and_payer_reach_lance() -> None:
    options = {
        "s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "id"},
        "requester_pays": True,
    }
    lance = lance_storage_options(options)
    assert lance["aws_server_side_encryption"] == "aws:kms"
    assert lance["aws_sse_kms_key_id"] == "id"
    assert lance["aws_request_payer"] == "true"


def test_options_of_other_clouds() -> None:
    assert lance_storage_options({"token": "/keys/robot.json"}, "gs") == {"google_service_account": "/keys/robot.json"}
    assert lance_storage_options({"token": "anon"}, "gs") == {"google_skip_signature": "true"}
    text = "AccountName=me;AccountKey=a2V5PT0=;BlobEndpoint=http://127.0.0.1:10000/me"
    assert lance_storage_options({"connection_string": text}, "az") == {
        "azure_storage_account_name": "me",
        "azure_storage_account_key": "a2V5PT0=",
        "azure_endpoint": "http://127.0.0.1:10000/me",
        "allow_http": "true",
    }
    assert lance_storage_options({"key": "k", "secret": "s"}, "file") == {}
