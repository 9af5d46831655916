"""FastMCP's client. Modes: auto negotiates the newest version, legacy the `initialize` handshake."""

from contextlib import asynccontextmanager

from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from mcp.shared.exceptions import MCPError

import contract


class FastMcp:
    rpc_error = MCPError

    def __init__(self, client):
        self.client = client
        self.protocol_version = client.protocol_version

    async def tools(self):
        return [contract.wire(tool) for tool in await self.client.list_tools()]

    async def call(self, name, arguments):
        return contract.wire(await self.client.call_tool_mcp(name, arguments))

    async def resources(self):
        return await self.client.list_resources()

    async def prompts(self):
        return await self.client.list_prompts()


@asynccontextmanager
async def connect(transport, target, mode):
    server = {
        "http": lambda: StreamableHttpTransport(target[0], headers=contract.HEADERS),
        "sse": lambda: SSETransport(target[0], headers=contract.HEADERS),
        "stdio": lambda: StdioTransport(target[0], target[1:], keep_alive=False),
    }[transport]()
    async with Client(server, mode=mode, timeout=120) as client:
        yield FastMcp(client)


contract.run(connect, modes=("auto", "legacy"))
