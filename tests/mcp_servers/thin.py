"""A server on nothing but the standard library, so that it starts in a moment; it is copied before a test's own code.

That calls `serve(tools, …)`, with for each tool its definition and a function of the arguments and a `Call`.
"""

import json
import os
import sys
import threading

LOCK = threading.Lock()
ANSWERS = {}
"""What the client answers to requests of ours, by their ids."""


def send(message):
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def text(*words):
    return {"content": [{"type": "text", "text": word} for word in words]}


class Call:
    def __init__(self, message):
        self.id = message["id"]
        self.token = message["params"].get("_meta", {}).get("progressToken")

    def progress(self, done, message):
        params = {"progressToken": self.token, "progress": done, "message": message}
        send({"method": "notifications/progress", "params": params})

    def elicit(self, message, schema):
        """Ask the person at the client, and wait."""
        id = f"elicit-{self.id}"
        ANSWERS[id] = threading.Event()
        params = {"message": message, "requestedSchema": schema}
        send({"id": id, "method": "elicitation/create", "params": params})
        ANSWERS[id].wait(60)
        return ANSWERS[id].answer


def tools_changed():
    send({"method": "notifications/tools/list_changed"})


def serve(tools, handlers=None, capabilities=None, protocol="2025-11-25"):
    """Answer until the client is gone. `tools` may be a function, for a list that changes."""

    def answer(message):
        method, params = message["method"], message.get("params") or {}
        if handlers and method in handlers:
            return handlers[method](params)
        if method == "initialize":
            about = {"tools": {"listChanged": True}, **(capabilities or {})}
            return {"protocolVersion": protocol, "capabilities": about, "serverInfo": {"name": "thin", "version": "1"}}
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": [definition for definition, _ in listed()]}
        if method == "tools/call":
            run = next(run for definition, run in listed() if definition.get("name") == params["name"])
            return run(params.get("arguments") or {}, Call(message))
        return None

    def listed():
        return tools() if callable(tools) else tools

    def work(message):
        result = answer(message)
        if result is None:
            send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
        else:
            send({"id": message["id"], "result": result})

    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            waiting = ANSWERS.get(message["id"])
            if waiting:
                waiting.answer = message.get("result") or message.get("error")
                waiting.set()
        elif "id" in message:
            threading.Thread(target=work, args=(message,), daemon=True).start()
    os._exit(0)
