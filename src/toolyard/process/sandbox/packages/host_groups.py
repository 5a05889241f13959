"""Named groups of hosts, such as `@python`: where packages come from, with the mirrors that the machine has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.process.sandbox.packages.mirrors import configured_mirrors, host_of

if TYPE_CHECKING:
    from collections.abc import Iterator


SIGN = "@"
GROUPS: dict[str, tuple[str, ...]] = {
    "@python": ("pypi.org", "files.pythonhosted.org"),
    "@node": ("registry.npmjs.org", "registry.yarnpkg.com", "repo.yarnpkg.com", "nodejs.org"),
    "@rust": ("index.crates.io", "static.crates.io", "crates.io", "static.rust-lang.org"),
    "@go": ("proxy.golang.org", "sum.golang.org"),
    "@ruby": ("rubygems.org", "index.rubygems.org"),
    "@java": ("repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org"),
}
"""Each host by its whole name: a group never means what is below a name. None where anybody may put what they like to
read elsewhere, as code hosts are."""


def is_group(text: str) -> bool:
    return text.startswith(SIGN)


def public_hosts(group: str) -> tuple[str, ...]:
    """The hosts that a group has on every machine; none for a group that there is not."""
    return GROUPS.get(group, ())


def group_with(host: str) -> str | None:
    """The group that a public registry is in."""
    return next((group for group, hosts in GROUPS.items() if host in hosts), None)


def mirror_hosts(group: str) -> Iterator[str]:
    """The hosts, with their ports, from which this machine's owner has such packages come."""
    if group in GROUPS:
        yield from dict.fromkeys(filter(None, (host_of(url) for url in configured_mirrors(group.removeprefix(SIGN)))))
