"""Which package manager a Node package is installed and built with, and by which commands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.config.document import Place
from toolyard.core.problems import Problem
from toolyard.process.interpreter import find_program, why_missing

if TYPE_CHECKING:
    from collections.abc import Collection

    from toolyard.kinds.node_module.package import PackageFacts
    from toolyard.kinds.node_module.settings import NodeModuleSettings


LOCK_FILES = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"))
NPM_LOCKS = ("package-lock.json", "npm-shrinkwrap.json")


class Manager(msgspec.Struct, frozen=True, kw_only=True):
    """A package manager, and how it is started."""

    name: str
    program: tuple[str, ...]
    version: str = ""
    """Of yarn, whose first version takes other words than all later ones."""

    @property
    def is_later_yarn(self) -> bool:
        return self.name == "yarn" and bool(self.version) and not self.version.startswith("1.")


class BuildStep(msgspec.Struct, frozen=True, kw_only=True):
    """One command of the way to a package that is ready."""

    code: Literal["node_install", "node_build"]
    argv: list[str]

    @property
    def command(self) -> str:
        """As a person would type it."""
        return " ".join([os.path.basename(self.argv[0]), *self.argv[1:]])


def needs_build(facts: PackageFacts, settings: NodeModuleSettings) -> bool:
    return (
        settings.node_build and facts.is_package and (facts.has_build_script or settings.node_build_command is not None)
    )


def needs_install(facts: PackageFacts, settings: NodeModuleSettings) -> bool:
    """Whether something has to be installed first; what only its authors need, when it is to be built."""
    wanted = facts.has_dependencies or (facts.has_dev_dependencies and needs_build(facts, settings))
    return settings.node_install_deps and wanted


def choose_manager(facts: PackageFacts, settings: NodeModuleSettings, files: Collection[str]) -> str | Problem:
    """The policy's, else the package's own, else the one whose lock file there is, else npm."""
    if settings.node_package_manager:
        return settings.node_package_manager
    if facts.package_manager:
        name = facts.package_manager.partition("@")[0]
        if name in ("npm", "pnpm", "yarn"):
            return name
        message = f"'packageManager' is '{facts.package_manager}'; only npm, pnpm and yarn are known"
        return manager_problem(facts, message, 'set "plugin_policy": {"node_package_manager": "npm"}')
    return next((manager for lock, manager in LOCK_FILES if lock in files), "npm")


def find_manager(facts: PackageFacts, settings: NodeModuleSettings, files: Collection[str]) -> Manager | Problem:
    """The program on PATH; where there is only corepack, that gets the others."""
    name = choose_manager(facts, settings, files)
    if isinstance(name, Problem):
        return name
    door = facts.document.door
    if path := find_program(name, door, or_ours=True):
        return Manager(name=name, program=(path,))
    corepack = find_program("corepack", door, or_ours=True)
    if corepack and name != "npm":
        return Manager(name=name, program=(corepack, name))
    hint = f'install {name}, or set another: "plugin_policy": {{"node_package_manager": "npm"}}'
    return manager_problem(facts, f"the package is made ready with {name}: {why_missing(name)}", hint)


def manager_problem(facts: PackageFacts, message: str, hint: str) -> Problem:
    return Place(facts.document, ()).problem("node_package_manager", message, hint, "packageManager")


def needs_manager(facts: PackageFacts, settings: NodeModuleSettings) -> bool:
    """Whether a package manager has anything to do."""
    return needs_install(facts, settings) or (needs_build(facts, settings) and settings.node_build_command is None)


def build_steps(
    facts: PackageFacts, settings: NodeModuleSettings, files: Collection[str], manager: Manager | None
) -> list[BuildStep]:
    steps: list[BuildStep] = []
    install, build = needs_install(facts, settings), needs_build(facts, settings)
    # A later yarn runs no script of a package that it has not installed, be there nothing to install.
    install = install or (build and settings.node_install_deps and manager is not None and manager.is_later_yarn)
    if install and manager:
        words = install_words(manager, files, dev=build, scripts=settings.node_allow_install_scripts)
        steps.append(BuildStep(code="node_install", argv=[*manager.program, *words]))
    if build and settings.node_build_command is not None:
        steps.append(BuildStep(code="node_build", argv=["/bin/sh", "-c", settings.node_build_command]))
    elif build and manager:
        steps.append(BuildStep(code="node_build", argv=[*manager.program, "run", "build"]))
    return steps


def install_words(manager: Manager, files: Collection[str], *, dev: bool, scripts: bool) -> list[str]:
    """An install that keeps to the lock file where there is one, and asks nothing."""
    no_scripts = [] if scripts else ["--ignore-scripts"]
    if manager.name == "npm":
        locked = any(lock in files for lock in NPM_LOCKS)
        which = "--include=dev" if dev else "--omit=dev"
        return ["ci" if locked else "install", "--no-audit", "--no-fund", which, *no_scripts]
    if manager.name == "pnpm":
        frozen = "--frozen-lockfile" if "pnpm-lock.yaml" in files else "--no-frozen-lockfile"
        return ["install", frozen, "--prod=false" if dev else "--prod", *no_scripts]
    if not manager.version.startswith("1."):
        locked_words = ["--immutable"] if "yarn.lock" in files else ["--no-immutable"]
        return ["install", *locked_words, *([] if scripts else ["--mode=skip-build"])]
    words = ["install", "--non-interactive", f"--production={'false' if dev else 'true'}", *no_scripts]
    return [*words, "--frozen-lockfile"] if "yarn.lock" in files else words
