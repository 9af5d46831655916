// The OAuth client of the TypeScript SDK 1.x: lets a person sign in, calls tools, refreshes, and goes on after a restart.
//
//     node_oauth.mjs MCP_URL USERNAME PASSWORD PYTHON [--provider] [--document URL] [--kept FILE [--revoke]]
//
// The options are those of python_oauth.py.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { packages } from './contract.mjs';

const { Client } = packages('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = packages('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { UnauthorizedError } = packages('@modelcontextprotocol/sdk/client/auth.js');

const CALLBACK = 'http://127.0.0.1:33420/callback';
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    provider: { type: 'boolean', default: false },
    document: { type: 'string' },
    kept: { type: 'string' },
    revoke: { type: 'boolean', default: false },
  },
});
const [url, username, password, python] = positionals;

/** Signs in and allows access, as a person would; returns where the browser is sent. */
function allow(address) {
  const script =
    'import sys; from oauth_browser import Browser; ' +
    'print(Browser(sys.argv[1]).allow(*sys.argv[2:5], sys.argv[5] == "true"))';
  const cwd = dirname(fileURLToPath(import.meta.url));
  const args = ['-c', script, CALLBACK, address, username, password, String(options.provider)];
  return execFileSync(python, args, { cwd, encoding: 'utf8' }).trim();
}

const kept = options.kept && existsSync(options.kept) ? JSON.parse(readFileSync(options.kept, 'utf8')) : {};
function keep(changes) {
  Object.assign(kept, changes);
  if (options.kept) writeFileSync(options.kept, JSON.stringify(kept));
}

let signedIn = 0;
let sentTo;
const metadata = {
  client_name: 'The TypeScript SDK',
  redirect_uris: [CALLBACK],
  grant_types: ['authorization_code', 'refresh_token'],
};
const provider = {
  get redirectUrl() { return CALLBACK; },
  get clientMetadata() { return metadata; },
  clientMetadataUrl: options.document,
  clientInformation: () => kept.client,
  saveClientInformation: (client) => keep({ client }),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => keep({ tokens }),
  redirectToAuthorization: (address) => {
    signedIn += 1;
    sentTo = allow(address.href);
  },
  saveCodeVerifier: (verifier) => keep({ verifier }),
  codeVerifier: () => kept.verifier,
  invalidateCredentials: (what) => {
    assert.equal(what, 'tokens', 'the program stays known');
    keep({ tokens: undefined });
  },
};

/** Gives the tokens back, and waits until the server refuses them. */
async function revoke() {
  const issuer = await fetch(new URL('/.well-known/oauth-authorization-server', url));
  const { revocation_endpoint: address } = await issuer.json();
  const body = new URLSearchParams({ token: kept.tokens.refresh_token, client_id: kept.client.client_id });
  assert.equal((await fetch(address, { method: 'POST', body })).status, 200);
  const headers = { authorization: `Bearer ${kept.tokens.access_token}`, 'content-type': 'application/json' };
  while ((await fetch(url, { method: 'POST', headers, body: '{}' })).status !== 401) await setTimeout(50);
}

async function use(title) {
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  const client = new Client({ name: 'tribune-test', version: '1.0.0' });
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth(new URL(sentTo).searchParams.get('code'));
    return use(title);
  }
  await client.callTool({ name: 'add_task', arguments: { title } });
  const { structuredContent } = await client.callTool({ name: 'list_tasks', arguments: {} });
  await client.close();
  return structuredContent.tasks.map((task) => task.title);
}

const mustSignIn = options.revoke || !kept.tokens ? 1 : 0;
if (options.revoke) await revoke();
const before = await use('Mow the lawn');
assert(before.includes('Mow the lawn'));
assert.equal(signedIn, mustSignIn);
if (options.document) assert.equal(kept.client.client_id, options.document);
const first = kept.tokens;
assert(first.scope.split(' ').includes('tasks'), first.scope);
// An access token that the server does not know any more is refreshed.
kept.tokens = { ...first, access_token: 'tribune_at_gone' };
assert.equal((await use('Feed the cat')).length, before.length + 1);
assert.notEqual(kept.tokens.refresh_token, first.refresh_token, 'rotated');
assert.equal(signedIn, mustSignIn, 'nobody had to sign in again');
console.log('ok');
