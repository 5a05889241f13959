"""A session of Toolyard as the environment of mini-swe-agent: `python with_mini_swe_agent.py TASK`, with a key."""

import asyncio
import sys
from typing import Any

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

from toolyard import AgentApplication

SYSTEM = "You work at a bash shell whose variables and folder stay from command to command."
TASK = "{{task}}\n\nWhen it is done: echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT, and after that your answer."


class ToolyardEnvironment(LocalEnvironment):
    """Commands go to one live shell: in the sandbox, permitted, on record; variables and folder stay between them."""

    def __init__(self, app: AgentApplication, runner: asyncio.Runner) -> None:
        super().__init__()
        self.app, self.runner = app, runner

    def execute(self, action: dict[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        result = self.runner.run(self.app.call_tool("bash", {"command": action["command"]}))
        output = {"output": result.text, "returncode": result.exit_code or 0, "exception_info": result.failure or ""}
        self._check_finished(output)
        return output


if __name__ == "__main__":
    with asyncio.Runner() as runner:
        app = runner.run(AgentApplication({"plugins": ["shell:session"]}, "sessions").__aenter__())
        environment, model = ToolyardEnvironment(app, runner), LitellmModel(model_name="openai/gpt-5-mini")
        try:
            print(DefaultAgent(model, environment, system_template=SYSTEM, instance_template=TASK).run(sys.argv[1]))
        finally:
            runner.run(app.__aexit__(None, None, None))
