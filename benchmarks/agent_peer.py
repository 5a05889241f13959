"""One peer in a process of its own: turns with one call of bash each; the seconds and the CPU of each, as JSON.

.venv-bench/bin/python benchmarks/agent_peer.py NAME ORIGIN TURNS
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable


def bash(command: str) -> str:
    """Run a command."""
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False).stdout


def openai_agents(origin: str) -> Callable[[], Awaitable[object]]:
    from openai import AsyncOpenAI

    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled

    set_tracing_disabled(True)
    client = AsyncOpenAI(api_key="k", base_url=f"{origin}/v1")
    model = OpenAIChatCompletionsModel(model="m", openai_client=client)
    agent = Agent(name="a", model=model, tools=[function_tool(bash)])
    return lambda: Runner.run(agent, "What is six times seven?")


def pydantic_ai(origin: str) -> Callable[[], Awaitable[object]]:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    agent = Agent(OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{origin}/v1", api_key="k")), tools=[bash])
    return lambda: agent.run("What is six times seven?")


def mini_swe_agent(origin: str) -> Callable[[], Awaitable[object]]:
    os.environ.update(
        MSWEA_COST_TRACKING="ignore_errors", MSWEA_SILENT_STARTUP="1", LITELLM_LOCAL_MODEL_COST_MAP="True"
    )
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.environments.local import LocalEnvironment
    from minisweagent.models.litellm_model import LitellmModel

    options = {"api_base": f"{origin}/v1", "api_key": "k"}
    model = LitellmModel(model_name="openai/commands-only", model_kwargs=options)

    async def run() -> None:
        templates = {"system_template": "Help.", "instance_template": "{{task}}"}
        DefaultAgent(model, LocalEnvironment(), **templates).run("What is six times seven?")

    return run


PEERS = {"openai-agents": openai_agents, "pydantic-ai": pydantic_ai, "mini-swe-agent": mini_swe_agent}


async def main(name: str, origin: str, turns: int) -> None:
    turn = PEERS[name](origin)
    for _ in range(3):
        await turn()
    taken = []
    for _ in range(turns):
        started, cpu = time.perf_counter(), time.process_time()
        await turn()
        taken.append((time.perf_counter() - started, time.process_time() - cpu))
    print(json.dumps(taken))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
