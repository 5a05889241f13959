"""`toolyard doctor`: is everything there that tools need?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from toolyard.cli.application import enter_workspace, open_application, read_config, sessions_dir
from toolyard.cli.render import show_json, show_text
from toolyard.cli.running import run_to_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.cli.doctor.checks import Row
    from toolyard.cli.main import GlobalOptions


STYLES = {"ok": "good", "warning": "warning", "failure": "error"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the rows as records.")
@click.pass_obj
def doctor(options: GlobalOptions, as_json: bool) -> int:
    """Look at the programs that tools need, at the configuration and at the folders that are written to.

    Each row is ok, a warning or a failure, with what to type next. Nothing is changed, and no key is shown. Exit
    status: 0 nothing failed, 1 something did.
    """
    return run_to_end(examine(options, as_json))


async def examine(options: GlobalOptions, as_json: bool) -> int:
    import asyncio

    import msgspec

    from toolyard.cli.doctor import checks

    options = enter_workspace(options)
    configuration, _ = read_config(options)
    async with open_application(options) as app:
        rows = [
            *await checks.check_programs(),
            *checks.check_sandbox(await asyncio.to_thread(app.sandbox_report)),
            *checks.check_configuration(app.problems(), configuration),
            *checks.check_folders(configuration, sessions_dir(options)),
            *checks.check_recovered_work(),
            *checks.check_provider_keys(configuration),
        ]
    if as_json:
        show_json([msgspec.structs.asdict(row) for row in rows])
    else:
        show(rows)
    return 1 if any(row.status == "failure" for row in rows) else 0


def show(rows: Sequence[Row]) -> None:
    width = max(len(row.check) for row in rows)
    for row in rows:
        show_text(f"{row.status:8} {row.check.ljust(width)}  {row.detail}\n", STYLES[row.status])
        if row.hint:
            show_text(f"{'':8} {'':{width}}  hint: {row.hint}\n", "faint")
