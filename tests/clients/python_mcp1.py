"""The Python SDK, 1.x: the `initialize` handshake only."""

from contextlib import asynccontextmanager
from datetime import timedelta

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

import contract


class Mcp1:
    rpc_error = McpError

    def __init__(self, session, initialized):
        self.session = session
        self.protocol_version = str(initialized.protocolVersion)

    async def tools(self):
        return contract.wire(await self.session.list_tools())["tools"]

    async def call(self, name, arguments):
        return contract.wire(await self.session.call_tool(name, arguments))

    async def resources(self):
        return (await self.session.list_resources()).resources

    async def prompts(self):
        return (await self.session.list_prompts()).prompts


@asynccontextmanager
async def connect(transport, target, _mode):
    streams = {
        "http": lambda: streamable_http_client(
            target[0], http_client=create_mcp_http_client(headers=contract.HEADERS)
        ),
        "sse": lambda: sse_client(target[0], headers=contract.HEADERS),
        "stdio": lambda: stdio_client(StdioServerParameters(command=target[0], args=target[1:])),
    }[transport]()
    async with streams as (read, write, *_):
        async with ClientSession(read, write, read_timeout_seconds=timedelta(seconds=120)) as session:
            yield Mcp1(session, await session.initialize())


contract.run(connect)
