"""Our tools in an agent of pydantic-ai: `python with_pydantic_ai.py PROMPT`, with `OPENAI_BASE_URL` and a key."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from pydantic_ai import Agent, Tool

from toolyard import AgentApplication


def tools_of(app: AgentApplication) -> list[Tool]:
    """Each tool with its own schema; arguments are checked and permitted on Toolyard's side."""

    def made(name: str, description: str, schema: dict[str, Any]) -> Tool:
        async def run(**arguments: Any) -> str:
            return (await app.call_tool(name, arguments)).text

        return Tool.from_schema(run, name, description, schema)

    functions = [spec["function"] for spec in app.tool_specs(format="openai")]
    return [made(one["name"], one["description"], one["parameters"]) for one in functions]


async def main(prompt: str) -> None:
    async with AgentApplication({"plugins": ["shell:session"]}, "sessions") as app:
        agent = Agent("openai-chat:gpt-5-mini", tools=tools_of(app))
        print((await agent.run(prompt)).output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
