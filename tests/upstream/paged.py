"""A server on the Python SDK 1.x that lists its tools on pages. `paged.py COUNT PER_PAGE`; pages of 0 never end."""

import sys

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

count, per_page = (int(argument) for argument in sys.argv[1:])
server = Server("paged")


def tool(number: int) -> types.Tool:
    return types.Tool(name=f"tool_{number:03}", inputSchema={"type": "object"})


@server.list_tools()
async def list_tools(request: types.ListToolsRequest) -> types.ListToolsResult:
    start = int(request.params.cursor or 0) if request.params else 0
    if per_page == 0:
        return types.ListToolsResult(tools=[tool(start)], nextCursor=str(start + 1))
    end = start + per_page
    tools = [tool(number) for number in range(start, min(end, count))]
    return types.ListToolsResult(tools=tools, nextCursor=str(end) if end < count else None)


async def main() -> None:
    async with stdio_server() as (reads, writes):
        await server.run(reads, writes, server.create_initialization_options())


anyio.run(main)
