"""A small server on the official Python SDK, 1.x or 2.x, for the tests of crates/upstream.

    server.py stdio
    server.py http PORT
"""

import os
import sys
import time

import anyio

try:
    from mcp.server.mcpserver import Context, Image, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations
except ImportError:
    from mcp.server.fastmcp import Context, FastMCP as MCPServer, Image
    from mcp.server.fastmcp.exceptions import ToolError
    from mcp.types import ToolAnnotations

IS_FIRST = not hasattr(Context, "notify_tools_changed")
READS = {"readOnlyHint": True, "openWorldHint": False}

transport, *rest = sys.argv[1:]
at = {"host": "127.0.0.1", "port": int(rest[0])} if rest else {}
server = MCPServer("small", **(at if IS_FIRST else {}))


def mark(word: str) -> None:
    """Reports an event to the test."""
    with open(os.environ["MARKS"], "a") as marks:
        marks.write(word + "\n")


@server.tool(title="Add numbers", annotations=ToolAnnotations.model_validate(READS))
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def unannotated(text: str) -> str:
    return text


@server.tool(structured_output=False)
def fail(why: str) -> str:
    raise ToolError(why)


@server.tool(structured_output=False)
async def slow(seconds: float) -> str:
    mark("begun")
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        mark("cancelled")
        raise
    mark("finished")
    return "at last"


@server.tool(structured_output=False)
async def freeze() -> str:
    """Blocks the whole server."""
    time.sleep(120)
    return "thawed"


@server.tool()
def structured() -> dict[str, int]:
    return {"one": 1, "two": 2}


@server.tool(structured_output=False)
def picture() -> list:
    return ["before", Image(data=b"\x89PNG" + bytes(12_000), format="png")]


@server.tool(structured_output=False)
def huge(bytes: int) -> str:
    return "x" * bytes


@server.tool(name="get-Environment", structured_output=False)
def environment() -> str:
    return "\n".join(sorted(os.environ))


@server.tool(name="get_environment", structured_output=False)
def same_name() -> str:
    return "the other one"


@server.tool(name="environment", structured_output=False)
def same_name_behind_another_server() -> str:
    return "the third one"


@server.tool(structured_output=False)
def die() -> str:
    print("died as it was told", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool(structured_output=False)
async def grow(ctx: Context) -> str:
    """Adds a tool and sends a notification."""

    def grown() -> str:
        return "new"

    server.add_tool(grown, name="grown")
    if IS_FIRST:
        await ctx.session.send_tool_list_changed()
    else:
        await ctx.notify_tools_changed()
    return "grown"


if transport == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", **({} if IS_FIRST else at))
