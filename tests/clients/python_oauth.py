"""The OAuth client of the Python SDK 2.x: registers, signs a person in, calls tools, refreshes, and goes on after a restart.

    python_oauth.py MCP_URL USERNAME PASSWORD [--provider]
"""

import asyncio
import sys
import urllib.parse

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

from oauth_browser import Browser

CALLBACK = "http://127.0.0.1:33419/callback"


class Storage:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def main(url, username, password, *options):
    storage, visited, signed_in = Storage(), [], 0

    async def redirect(address):
        nonlocal signed_in
        signed_in += 1
        browser = Browser(CALLBACK)
        provider = "--provider" in options
        visited.append(await asyncio.to_thread(browser.allow, address, username, password, provider))

    async def callback():
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(visited[-1]).query))
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))

    def provider():
        metadata = OAuthClientMetadata(client_name="The Python SDK", redirect_uris=[CALLBACK])
        return OAuthClientProvider(url, metadata, storage, redirect, callback)

    async def use(auth, title):
        async with httpx2.AsyncClient(auth=auth, timeout=60, trust_env=False) as http:
            async with Client(streamable_http_client(url, http_client=http)) as client:
                await client.call_tool("add_task", {"title": title})
                tasks = (await client.call_tool("list_tasks", {})).structured_content["tasks"]
                return [task["title"] for task in tasks]

    auth = provider()
    assert "Mow the lawn" in await use(auth, "Mow the lawn")
    assert signed_in == 1, signed_in
    first = storage.tokens
    assert first.scope and "tasks" in first.scope.split(), first.scope
    # As if the hour of the access token were over.
    auth.context.token_expiry_time = 1
    assert "Feed the cat" in await use(auth, "Feed the cat")
    assert storage.tokens.access_token != first.access_token, "refreshed"
    assert storage.tokens.refresh_token != first.refresh_token, "rotated"
    # A program that was started again has what it stored.
    assert len(await use(provider(), "Water the beans")) == 3
    assert signed_in == 1, "nobody had to sign in again"
    print("ok")


asyncio.run(main(*sys.argv[1:]))
