"""The OAuth client of the Python SDK 2.x: signs a person in, calls tools, refreshes, and goes on after a restart.

    python_oauth.py MCP_URL USERNAME PASSWORD [--provider] [--document URL] [--kept FILE [--revoke]]

--provider   the person signs in at the server's provider
--document   the program is known by its document at this address, and does not register
--kept       the file in which the program keeps its tokens; with those of an earlier run nobody signs in
--revoke     give back the tokens of the earlier run first, so that somebody has to sign in again
"""

import argparse
import asyncio
import json
import pathlib
import ssl
import urllib.parse

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from oauth_browser import Browser

CALLBACK = "http://127.0.0.1:33419/callback"


class Storage:
    """Tokens and the program's id, in memory and perhaps in a file."""

    def __init__(self, file):
        self.file = file and pathlib.Path(file)
        self.tokens = self.client = None
        if self.file and self.file.exists():
            kept = json.loads(self.file.read_text())
            self.tokens = OAuthToken.model_validate_json(kept["tokens"])
            self.client = OAuthClientInformationFull.model_validate_json(kept["client"])

    def keep(self):
        if self.file and self.tokens:
            kept = {"tokens": self.tokens.model_dump_json(), "client": self.client.model_dump_json()}
            self.file.write_text(json.dumps(kept))

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens
        self.keep()

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client
        self.keep()


def web(**more):
    """Without a proxy; what certificates are trusted is in SSL_CERT_FILE."""
    return httpx2.AsyncClient(trust_env=False, verify=ssl.create_default_context(), **more)


async def revoke(url, storage):
    """Gives the tokens back, and waits until the server refuses them."""
    async with web() as http:
        issuer = urllib.parse.urljoin(url, "/.well-known/oauth-authorization-server")
        address = (await http.get(issuer)).json()["revocation_endpoint"]
        form = {"token": storage.tokens.refresh_token, "client_id": storage.client.client_id}
        assert (await http.post(address, data=form)).status_code == 200
        headers = {"authorization": f"Bearer {storage.tokens.access_token}"}
        async with asyncio.timeout(60):
            while (await http.post(url, headers=headers, json={})).status_code != 401:
                await asyncio.sleep(0.05)


async def main(options):
    storage, visited, signed_in = Storage(options.kept), [], 0
    must_sign_in = int(options.revoke or storage.tokens is None)
    if options.revoke:
        await revoke(options.url, storage)

    async def redirect(address):
        nonlocal signed_in
        signed_in += 1
        browser = Browser(CALLBACK)
        person = options.username, options.password, options.provider
        visited.append(await asyncio.to_thread(browser.allow, address, *person))

    async def callback():
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(visited[-1]).query))
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))

    def provider():
        metadata = OAuthClientMetadata(client_name="The Python SDK", redirect_uris=[CALLBACK])
        return OAuthClientProvider(
            options.url, metadata, storage, redirect, callback, client_metadata_url=options.document
        )

    async def use(auth, title):
        async with web(auth=auth, timeout=60) as http:
            async with Client(streamable_http_client(options.url, http_client=http)) as client:
                await client.call_tool("add_task", {"title": title})
                tasks = (await client.call_tool("list_tasks", {})).structured_content["tasks"]
                return [task["title"] for task in tasks]

    auth = provider()
    before = await use(auth, "Mow the lawn")
    assert "Mow the lawn" in before
    assert signed_in == must_sign_in, signed_in
    if options.document:
        assert storage.client.client_id == options.document, storage.client
    if not must_sign_in:
        # The SDK refreshes only at an address that this process has discovered.
        print("ok")
        return
    first = storage.tokens
    assert first.scope and "tasks" in first.scope.split(), first.scope
    # As if the hour of the access token were over.
    auth.context.token_expiry_time = 1
    assert "Feed the cat" in await use(auth, "Feed the cat")
    assert storage.tokens.access_token != first.access_token, "refreshed"
    assert storage.tokens.refresh_token != first.refresh_token, "rotated"
    # A program that was started again has what it stored.
    assert len(await use(provider(), "Water the beans")) == len(before) + 2
    assert signed_in == must_sign_in, "nobody had to sign in again"
    print("ok")


parser = argparse.ArgumentParser()
for name in ("url", "username", "password"):
    parser.add_argument(name)
for name in ("--document", "--kept"):
    parser.add_argument(name)
for name in ("--provider", "--revoke"):
    parser.add_argument(name, action="store_true")
asyncio.run(main(parser.parse_args()))
