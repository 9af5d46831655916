"""The Python SDK, 2.x. Modes: auto negotiates the newest version, legacy the `initialize` handshake."""

from contextlib import asynccontextmanager

from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

import contract


class Mcp2:
    rpc_error = MCPError

    def __init__(self, client):
        self.client = client
        self.protocol_version = client.protocol_version

    async def tools(self):
        return contract.wire(await self.client.list_tools())["tools"]

    async def call(self, name, arguments):
        return contract.wire(await self.client.call_tool(name, arguments))

    async def resources(self):
        return (await self.client.list_resources()).resources

    async def prompts(self):
        return (await self.client.list_prompts()).prompts


@asynccontextmanager
async def connect(transport, target, mode):
    server = {
        "http": lambda: streamable_http_client(
            target[0], http_client=create_mcp_http_client(headers=contract.HEADERS)
        ),
        "sse": lambda: sse_client(target[0], headers=contract.HEADERS),
        "stdio": lambda: StdioServerParameters(command=target[0], args=target[1:]),
    }[transport]()
    async with Client(server, mode=mode, read_timeout_seconds=120) as client:
        yield Mcp2(client)


contract.run(connect, modes=("auto", "legacy"))
