"""Our tools in an agent of openai-agents: `python with_openai_agents.py PROMPT`, with `OPENAI_BASE_URL` and a key."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from agents import Agent, FunctionTool, Runner, set_default_openai_api, set_tracing_disabled
from toolyard import AgentApplication


def tools_of(app: AgentApplication) -> list[FunctionTool]:
    """Each tool with its own schema; arguments are checked and permitted on Toolyard's side."""

    def made(name: str, description: str, schema: dict[str, Any]) -> FunctionTool:
        async def run(_: object, arguments: str) -> str:
            return (await app.call_tool(name, json.loads(arguments))).text

        return FunctionTool(name, description, schema, run, strict_json_schema=False)

    functions = [spec["function"] for spec in app.tool_specs(format="openai")]
    return [made(one["name"], one["description"], one["parameters"]) for one in functions]


async def main(prompt: str) -> None:
    set_default_openai_api("chat_completions")
    set_tracing_disabled(True)
    async with AgentApplication({"plugins": ["shell:session"]}, "sessions") as app:
        agent = Agent(name="toolyard", model="gpt-5-mini", tools=[*tools_of(app)])
        print((await Runner.run(agent, prompt)).final_output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
