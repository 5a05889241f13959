"""What the description of a shell tool says of the sandbox that its commands run in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from toolyard.core.tool import ToolSpec
    from toolyard.process.sandbox.policy import SandboxPolicy


MOST_HOSTS = 6


def with_limits(spec: ToolSpec, policy: SandboxPolicy | None) -> ToolSpec:
    """The same tool, whose description tells a model its limits beforehand."""
    return spec if policy is None else replace(spec, description=f"{spec.description} {limits_of(policy)}")


def limits_of(policy: SandboxPolicy) -> str:
    sockets = "" if policy.unix_sockets else " Sockets of processes outside cannot be reached."
    return (
        "Commands run in a sandbox: they can change nothing but the working directory and temporary files, and not "
        f"even that where permissions are for looking only. {hosts_of(policy)}{sockets} A command that needs more says "
        "so with `reach` and `reason`."
    )


def hosts_of(policy: SandboxPolicy) -> str:
    if policy.network:
        return "They can reach any host."
    if not policy.hosts:
        return "They reach no host unless somebody allows it."
    named = ", ".join(policy.hosts[:MOST_HOSTS]) + (" …" if len(policy.hosts) > MOST_HOSTS else "")
    return f"They reach {named}, and other hosts only if somebody allows it."
