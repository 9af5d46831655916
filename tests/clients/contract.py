"""The contract that every client library must see at Tribune's address.

Each script beside this one wraps one real client library in a `Client` and hands it to `run`:

    script.py [--mode MODE] VERSION http URL
    script.py [--mode MODE] VERSION sse URL
    script.py [--mode MODE] VERSION stdio COMMAND ARGS...

VERSION is the protocol version that must have been negotiated. The exit code is 0 only if everything held.
"""

import argparse
import asyncio
import json
import os
import sys
import traceback
from contextlib import AbstractAsyncContextManager
from typing import Any, Callable, Protocol

HINTS = ("readOnlyHint", "destructiveHint", "openWorldHint")
INVALID_PARAMS = -32602
#: What shows who calls over HTTP.
AUTHORIZATION = os.environ.get("TRIBUNE_AUTHORIZATION")
HEADERS = {"Authorization": AUTHORIZATION} if AUTHORIZATION else {}
#: Their hints, in the order of HINTS.
TASK_TOOLS = {
    "add_task": (False, False, False),
    "list_tasks": (True, False, False),
    "complete_task": (False, False, False),
    "update_task": (False, False, False),
    "undo_task_update": (False, False, False),
    "delete_task": (False, True, False),
}


class Client(Protocol):
    """A connected client. It returns values in wire format."""

    protocol_version: str
    #: The exception for a JSON-RPC error.
    rpc_error: type[Exception]

    async def tools(self) -> list[dict[str, Any]]: ...

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]: ...

    async def resources(self) -> list[Any]: ...

    async def prompts(self) -> list[Any]: ...


class Broken(AssertionError):
    """The contract does not hold."""


def expect(holds: bool, what: str, seen: Any) -> None:
    if not holds:
        raise Broken(f"{what}; seen: {seen!r}")


def wire(model: Any) -> dict[str, Any]:
    """A library's result in wire format."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


async def check(client: Client, version: str) -> None:
    expect(client.protocol_version == version, f"the negotiated version is {version}", client.protocol_version)
    # Before listing: some clients do not send calls that violate a listed schema.
    await check_search_without_query(client)
    await check_tools(client)
    found = await check_search(client)
    await check_fetch(client, found)
    await check_fetch_of_unknown_id(client)
    await check_unknown_tool(client)
    if os.environ.get("TRIBUNE_HAS_TASKS") == "1":
        await check_tasks(client)
    resources, prompts = await client.resources(), await client.prompts()
    expect(resources == [], "resources/list is empty", resources)
    expect(prompts == [], "prompts/list is empty", prompts)


async def check_tools(client: Client) -> None:
    tools = {tool["name"]: tool for tool in await client.tools()}
    for name, argument in (("search", "query"), ("fetch", "id")):
        expect(name in tools, f"there is a tool {name}", sorted(tools))
        tool = tools[name]
        expect(bool(tool.get("title")) and bool(tool.get("description")), f"{name} has title and description", tool)
        hints = {hint: tool.get("annotations", {}).get(hint) for hint in HINTS}
        expect(list(hints.values()) == [True, False, False], f"{name} says what it does", hints)
        schema = tool["inputSchema"]
        expect(schema["type"] == "object" and schema["required"] == [argument], f"{name} wants {argument}", schema)
        expect(schema["properties"][argument]["type"] == "string", f"{argument} is a string", schema)
        expect(tool.get("outputSchema", {}).get("type") == "object", f"{name} has an output schema", tool)


async def check_search(client: Client) -> dict[str, Any]:
    answer = structured(await client.call("search", {"query": "runner beans"}))
    expect(len(answer["results"]) > 0, "search finds runner beans", answer)
    first = answer["results"][0]
    expect(set(first) == {"id", "title", "text", "url"}, "a result has id, title, text and url", first)
    expect(first["title"] == "Runner beans", "the best result comes first", first)
    expect(all(isinstance(value, str) and value for value in first.values()), "none of them is empty", first)
    expect(first["url"].startswith(("http://", "https://")), "its url is absolute", first)
    return first


async def check_fetch(client: Client, found: dict[str, Any]) -> None:
    document = structured(await client.call("fetch", {"id": found["id"]}))
    expect(set(document) == {"id", "title", "text", "url", "metadata"}, "fetch gives exactly its five", document)
    expect(document["id"] == found["id"] and document["title"] == found["title"], "it is the one found", document)
    expect("Sow runner beans in May" in document["text"], "it has the whole text", document)
    expect(isinstance(document["metadata"], dict), "metadata is an object", document)


async def check_fetch_of_unknown_id(client: Client) -> None:
    message = failure(await client.call("fetch", {"id": "docs:no-such-document"}))
    expect("not found" in message.lower(), "an unknown id is not found", message)


async def check_search_without_query(client: Client) -> None:
    message = failure(await client.call("search", {}))
    expect("query" in message, "the message names `query`", message)


async def check_tasks(client: Client) -> None:
    tools = {tool["name"]: tool for tool in await client.tools()}
    for name, hints in TASK_TOOLS.items():
        expect(name in tools, f"there is a tool {name}", sorted(tools))
        seen = tuple(tools[name]["annotations"][hint] for hint in HINTS)
        expect(seen == hints, f"{name} says what it does", tools[name])
        expect("user" not in tools[name]["inputSchema"]["properties"], f"{name} takes no user", tools[name])
    given = {"title": "Order kohlrabi seed", "priority": "high", "tags": ["garden"], "due_date": "2027-02-01"}
    added = structured(await client.call("add_task", given))
    expect({key: added[key] for key in given} == given and added["status"] == "pending", "it is kept as given", added)
    task = {"task_id": added["id"]}
    listed = structured(await client.call("list_tasks", {"tag": "garden", "query": "kohlrabi", "status": "pending"}))
    expect([listed["total"], listed["tasks"]] == [1, [added]], "the list has it", listed)
    done = structured(await client.call("complete_task", task))
    expect(done["status"] == "completed", "it is completed", done)
    done = structured(await client.call("complete_task", task))
    expect(done["status"] == "pending", "completing again takes it back", done)
    changed = structured(await client.call("update_task", {**task, "due_date": None, "title": "Order kohlrabi"}))
    expect([changed["title"], changed["due_date"]] == ["Order kohlrabi", None], "it is changed", changed)
    undone = structured(await client.call("undo_task_update", task))
    expect([undone["title"], undone["due_date"]] == [given["title"], given["due_date"]], "it is undone", undone)
    again = structured(await client.call("undo_task_update", task))
    expect(again["title"] == "Order kohlrabi", "undone twice, it is changed", again)
    found = structured(await client.call("search", {"query": "kohlrabi task"}))["results"]
    expect(found[0]["id"] == f"task:{added['id']}", "search finds it", found)
    document = structured(await client.call("fetch", {"id": found[0]["id"]}))
    expect(document["title"] == "Order kohlrabi", "fetch has it", document)
    message = failure(await client.call("update_task", {**task, "due_date": "2027-02-30"}))
    expect(message.startswith("VALIDATION_ERROR: "), "there is no such day", message)
    gone = structured(await client.call("delete_task", task))
    expect(gone["deleted"] is True, "it is deleted", gone)
    message = failure(await client.call("complete_task", task))
    expect(message.startswith("TASK_NOT_FOUND: "), "it is gone", message)


async def check_unknown_tool(client: Client) -> None:
    try:
        answer = await client.call("no_such_tool", {})
    except client.rpc_error as error:
        code = error.error.code
        expect(code == INVALID_PARAMS, f"an unknown tool is JSON-RPC error {INVALID_PARAMS}", code)
    else:
        raise Broken(f"an unknown tool is a JSON-RPC error; seen: {answer!r}")


def structured(result: dict[str, Any]) -> dict[str, Any]:
    """The structured answer, which must equal its text item."""
    expect(result.get("isError", False) is False, "the call succeeds", result)
    text = only_text(result)
    expect(json.loads(text) == result.get("structuredContent"), "text and structuredContent are the same", result)
    return result["structuredContent"]


def failure(result: dict[str, Any]) -> str:
    expect(result.get("isError") is True, "the call fails with isError", result)
    return only_text(result)


def only_text(result: dict[str, Any]) -> str:
    content = result["content"]
    expect(len(content) == 1 and content[0]["type"] == "text", "there is exactly one text item", content)
    return content[0]["text"]


Connect = Callable[[str, list[str], str], AbstractAsyncContextManager[Client]]


def run(connect: Connect, modes: tuple[str, ...] = ("default",)) -> None:
    """Runs the contract with the client from `connect(transport, target, mode)`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=modes, default=modes[0])
    parser.add_argument("version")
    parser.add_argument("transport", choices=("http", "sse", "stdio"))
    parser.add_argument("target", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()

    async def main() -> None:
        async with connect(arguments.transport, arguments.target, arguments.mode) as client:
            await check(client, arguments.version)

    try:
        asyncio.run(main())
    except BaseException:  # exception groups of the libraries are no Exception on their own
        traceback.print_exc()
        sys.exit(1)
    print("the contract holds")
