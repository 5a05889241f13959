"""Which addresses git is given, what can never be one, and where policy lets us go."""

from __future__ import annotations

import pytest

from toolyard.core.problems import Problem
from toolyard.plugins.acquire.git_reference import GitReference, read_git_reference, remote_refusal, split_reference


def read(url: str, ref: str | None = None) -> GitReference | Problem:
    return read_git_reference(url, ref, "/base")


@pytest.mark.parametrize(
    ("url", "given", "protocol", "host"),
    [
        ("/srv/x.git", "/srv/x.git", "file", None),
        ("repos/x", "/base/repos/x", "file", None),
        ("./a:b", "/base/a:b", "file", None),
        ("../-x", "/-x", "file", None),
        ("file:///srv/x.git", "/srv/x.git", "file", None),
        ("file://localhost/srv/a%20b", "/srv/a b", "file", None),
        ("https://example.org/a/b.git", "https://example.org/a/b.git", "https", "example.org"),
        ("HTTPS://Example.ORG./a", "https://Example.ORG./a", "https", "example.org"),
        ("http://127.0.0.1:8080/a", "http://127.0.0.1:8080/a", "http", "127.0.0.1"),
        ("https://user:pass@example.org/a", "https://user:pass@example.org/a", "https", "example.org"),
        ("ssh://git@example.org:22/a", "ssh://git@example.org:22/a", "ssh", "example.org"),
        ("ssh://git@[::1]/a", "ssh://git@[::1]/a", "ssh", "::1"),
        ("git+ssh://example.org/a", "ssh://example.org/a", "ssh", "example.org"),
        ("git@example.org:a/b.git", "git@example.org:a/b.git", "ssh", "example.org"),
        ("example.org:a", "example.org:a", "ssh", "example.org"),
        ("git://example.org/a", "git://example.org/a", "git", "example.org"),
    ],
)
def test_every_usual_address_is_understood(url, given, protocol, host):
    reference = read(url)
    assert isinstance(reference, GitReference), reference
    assert (reference.url, reference.protocol, reference.host) == (given, protocol, host)
    assert reference.is_remote == (protocol != "file")
    assert "pass" not in reference.shown


@pytest.mark.parametrize(
    "url",
    [
        "",
        "--upload-pack=touch /tmp/owned",
        "-c",
        "ext::sh -c 'touch /tmp/owned'",
        "ext::sh",
        "fd::17",
        "::x",
        "foo::https://example.org/x",
        "foo://example.org/x",
        "javascript://x",
        "https://-oProxyCommand=evil/x",
        "ssh://-oProxyCommand=touch%20x/x",
        "ssh://-oProxyCommand=x@example.org/x",
        "ssh://example.org/-x",
        "-oProxyCommand=x:path",
        "user@-oProxyCommand=x:path",
        "-user@example.org:path",
        "example.org:-path",
        "https://allowed.org\\@evil.org/x",
        "https://allowed.org@evil.org@other.org/x",
        "https://evil.org%00.allowed.org/x",
        "https://ev il.org/x",
        "https://münchen.example/x",
        "https:///x",
        "https://example.org:99999/x",
        "file://example.org/x",
        "/a\nb",
        "/a\0b",
        "https://example.org/x#v1",
    ],
)
def test_what_could_be_an_option_or_a_program_is_refused(url):
    refusal = read(url)
    assert isinstance(refusal, Problem), refusal
    assert refusal.code == "plugin_git_url"
    assert refusal.hint


@pytest.mark.parametrize("ref", [None, "v1.0.0", "main", "feature/x-y", "0a1b2c3", "HEAD", "größe", "a#b", "v1+meta"])
def test_names_of_tags_branches_and_commits(ref):
    reference = read("/x", ref)
    assert isinstance(reference, GitReference)
    assert reference.ref == ref


@pytest.mark.parametrize(
    "ref",
    [
        "--upload-pack=touch /tmp/owned",
        "-c",
        "--exec=x",
        "a b",
        "a..b",
        "HEAD~1",
        "HEAD^",
        "a:b",
        ":refs/heads/x",
        "+refs/*",
        "a@{1}",
        "a\nb",
        "a.lock",
        "/a/",
        ".hidden",
        "a//b",
        "@",
        "x\\y",
        "[a]",
    ],
)
def test_a_reference_that_is_no_name_is_refused(ref):
    refusal = read("/x", ref)
    assert isinstance(refusal, Problem)
    assert refusal.code == "plugin_git_ref"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("https://x/y#v1", ("https://x/y", "v1")),
        ("https://x/y", ("https://x/y", None)),
        ("/a#b#c", ("/a#b", "c")),
        ("/a#b#", ("/a#b", None)),
    ],
)
def test_the_reference_comes_after_the_last_hash(text, parts):
    assert split_reference(text) == parts


@pytest.mark.parametrize(
    ("url", "allow", "hosts", "code"),
    [
        ("/srv/x", False, ["example.org"], None),
        ("file:///srv/x", False, [], None),
        ("https://example.org/x", False, [], "plugin_remote_not_allowed"),
        ("http://127.0.0.1/x", False, [], "plugin_remote_not_allowed"),
        ("ssh://example.org/x", False, ["example.org"], "plugin_remote_not_allowed"),
        ("git@example.org:x", False, [], "plugin_remote_not_allowed"),
        ("git://example.org/x", False, [], "plugin_remote_not_allowed"),
        ("https://example.org/x", True, [], None),
        ("https://example.org/x", True, ["Example.ORG"], None),
        ("https://example.org:8443/x", True, ["example.org:8443"], None),
        ("https://example.org:9000/x", True, ["example.org:8443"], "plugin_host_not_allowed"),
        ("git@example.org:x", True, ["example.org"], None),
        ("https://evil.org/x", True, ["example.org"], "plugin_host_not_allowed"),
        ("https://example.org.evil.org/x", True, ["example.org"], "plugin_host_not_allowed"),
        ("https://example.org@evil.org/x", True, ["example.org"], "plugin_host_not_allowed"),
        ("https://sub.example.org/x", True, ["example.org"], "plugin_host_not_allowed"),
    ],
)
def test_policy_decides_where_we_go(url, allow, hosts, code):
    reference = read(url)
    assert isinstance(reference, GitReference)
    refusal = remote_refusal(reference, allow_remote=allow, hosts=hosts)
    assert (refusal.code if refusal else None) == code
