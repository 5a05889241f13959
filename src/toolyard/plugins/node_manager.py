"""Which package manager a Node package is installed and built with, and by which commands."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from toolyard.config.problems import ConfigProblem

if TYPE_CHECKING:
    from collections.abc import Collection

    from toolyard.plugins.node_package import PackageFacts

__all__ = ["NodePolicy", "Step", "build_steps", "choose_manager", "needs_build", "needs_install"]

LOCK_FILES = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"))
NPM_LOCKS = ("package-lock.json", "npm-shrinkwrap.json")
SECOND_YARN = re.compile(r"yarn@[~^>=v]*(?:[2-9]|\d\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePolicy:
    """What may be done to make a package ready, and where."""

    cache: str
    """The folder for copies that were installed and built."""
    install_deps: bool = True
    build: bool = True
    package_manager: Literal["npm", "pnpm", "yarn"] | None = None
    allow_install_scripts: bool = True
    build_command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command of the way to a package that is ready."""

    code: Literal["node_install", "node_build"]
    argv: list[str]

    @property
    def command(self) -> str:
        """As a person would type it."""
        return " ".join([os.path.basename(self.argv[0]), *self.argv[1:]])


def needs_build(facts: PackageFacts, policy: NodePolicy) -> bool:
    """Whether something has to be built first."""
    return policy.build and facts.is_package and (facts.has_build_script or policy.build_command is not None)


def needs_install(facts: PackageFacts, policy: NodePolicy) -> bool:
    """Whether something has to be installed first; what only its authors need, when it is to be built."""
    wanted = facts.has_dependencies or (facts.has_dev_dependencies and needs_build(facts, policy))
    return policy.install_deps and wanted


def choose_manager(facts: PackageFacts, policy: NodePolicy, files: Collection[str]) -> str | ConfigProblem:
    """The policy's, else the package's own, else the one whose lock file there is, else npm."""
    if policy.package_manager:
        return policy.package_manager
    if facts.package_manager:
        name = facts.package_manager.partition("@")[0]
        if name in ("npm", "pnpm", "yarn"):
            return name
        return ConfigProblem(
            code="node_package_manager",
            message=f"'packageManager' is '{facts.package_manager}'; only npm, pnpm and yarn are known",
            hint='set "plugin_policy": {"node_package_manager": "npm"}',
            where=facts.document.position(("packageManager",)),
        )
    return next((manager for lock, manager in LOCK_FILES if lock in files), "npm")


def build_steps(facts: PackageFacts, policy: NodePolicy, files: Collection[str]) -> list[Step] | ConfigProblem:
    """The commands, in order."""
    manager = choose_manager(facts, policy, files)
    if isinstance(manager, ConfigProblem):
        return manager
    steps: list[Step] = []
    install, build = needs_install(facts, policy), needs_build(facts, policy)
    program: list[str] = []
    if install or policy.build_command is None:
        found = find_manager(manager)
        if found is None:
            return missing_manager(manager, facts)
        program = found
    if install:
        words = install_words(manager, facts, files, dev=build, scripts=policy.allow_install_scripts)
        steps.append(Step(code="node_install", argv=[*program, *words]))
    if build and policy.build_command is not None:
        steps.append(Step(code="node_build", argv=[shutil.which("sh") or "/bin/sh", "-c", policy.build_command]))
    elif build:
        steps.append(Step(code="node_build", argv=[*program, "run", "build"]))
    return steps


def install_words(manager: str, facts: PackageFacts, files: Collection[str], *, dev: bool, scripts: bool) -> list[str]:
    """An install that keeps to the lock file where there is one, and asks nothing."""
    if manager == "npm":
        locked = any(lock in files for lock in NPM_LOCKS)
        dev_words = ["--include=dev"] if dev else ["--omit=dev"]
        words = ["ci" if locked else "install", "--no-audit", "--no-fund", *dev_words]
        return words if scripts else [*words, "--ignore-scripts"]
    if manager == "pnpm":
        words = ["install", "--frozen-lockfile" if "pnpm-lock.yaml" in files else "--no-frozen-lockfile"]
        words += ["--prod=false"] if dev else ["--prod"]
        return words if scripts else [*words, "--ignore-scripts"]
    if SECOND_YARN.match(facts.package_manager or "") or ".yarnrc.yml" in files:
        words = ["install", "--immutable" if "yarn.lock" in files else "--no-immutable"]
        return words if scripts else [*words, "--mode=skip-build"]
    words = ["install", "--non-interactive", f"--production={'false' if dev else 'true'}"]
    words += ["--frozen-lockfile"] if "yarn.lock" in files else []
    return words if scripts else [*words, "--ignore-scripts"]


def find_manager(name: str) -> list[str] | None:
    """The program on PATH; where there is only corepack, that gets the others."""
    if path := shutil.which(name):
        return [os.path.abspath(path)]
    corepack = shutil.which("corepack")
    return [os.path.abspath(corepack), name] if corepack and name != "npm" else None


def missing_manager(name: str, facts: PackageFacts) -> ConfigProblem:
    return ConfigProblem(
        code="node_package_manager",
        message=f"the package is made ready with {name}, which is not on PATH",
        hint=f'install {name}, or set another: "plugin_policy": {{"node_package_manager": "npm"}}',
        where=facts.document.position(("packageManager",)),
    )
