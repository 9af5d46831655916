// The OAuth client of the TypeScript SDK 1.x: registers, lets a person sign in, calls tools and refreshes.
//
//     node_oauth.mjs MCP_URL USERNAME PASSWORD PYTHON

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

import { packages } from './contract.mjs';

const { Client } = packages('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = packages('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { UnauthorizedError } = packages('@modelcontextprotocol/sdk/client/auth.js');

const CALLBACK = 'http://127.0.0.1:33420/callback';
const [url, username, password, python] = process.argv.slice(2);

/** Signs in and allows access, as a person would; returns where the browser is sent. */
function allow(address) {
  const script = 'import sys; from oauth_browser import Browser; print(Browser(sys.argv[1]).allow(*sys.argv[2:5]))';
  const cwd = dirname(fileURLToPath(import.meta.url));
  return execFileSync(python, ['-c', script, CALLBACK, address, username, password], { cwd, encoding: 'utf8' }).trim();
}

const kept = {};
let sentTo;
const provider = {
  get redirectUrl() { return CALLBACK; },
  get clientMetadata() { return { client_name: 'The TypeScript SDK', redirect_uris: [CALLBACK] }; },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  redirectToAuthorization: (address) => { sentTo = allow(address.href); },
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
};

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

assert.deepEqual(await use('Mow the lawn'), ['Mow the lawn']);
const first = kept.tokens;
assert(first.scope.split(' ').includes('tasks'), first.scope);
// An access token that the server does not know any more is refreshed.
kept.tokens = { ...first, access_token: 'tribune_at_gone' };
sentTo = undefined;
assert.equal((await use('Feed the cat')).length, 2);
assert.notEqual(kept.tokens.refresh_token, first.refresh_token, 'rotated');
assert.equal(sentTo, undefined, 'nobody had to sign in again');
console.log('ok');
