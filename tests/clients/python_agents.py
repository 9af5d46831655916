"""The OpenAI Agents SDK, as an agent uses it to list and call tools; no model and no key are involved."""

from contextlib import asynccontextmanager

from agents.mcp import MCPServerSse, MCPServerStdio, MCPServerStreamableHttp
from mcp.shared.exceptions import MCPError

import contract


class Agents:
    rpc_error = MCPError

    def __init__(self, server):
        self.server = server
        self.protocol_version = server.session.protocol_version

    async def tools(self):
        return [contract.wire(tool) for tool in await self.server.list_tools()]

    async def call(self, name, arguments):
        return contract.wire(await self.server.call_tool(name, arguments))

    async def resources(self):
        return (await self.server.list_resources()).resources

    async def prompts(self):
        return (await self.server.list_prompts()).prompts


@asynccontextmanager
async def connect(transport, target, _mode):
    server = {
        "http": lambda: MCPServerStreamableHttp(params={"url": target[0], "headers": contract.HEADERS}),
        "sse": lambda: MCPServerSse(params={"url": target[0], "headers": contract.HEADERS}),
        "stdio": lambda: MCPServerStdio(params={"command": target[0], "args": target[1:]}),
    }[transport]()
    async with server:
        yield Agents(server)


contract.run(connect)
