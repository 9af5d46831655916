// The MCP Inspector's command line signs in, with the browser that it opens, and lists the tools.
//
//     node_inspector_oauth.mjs MCP_URL USERNAME PASSWORD PYTHON CALLBACK_PORT

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { packages } from './contract.mjs';

const [url, username, password, python, port] = process.argv.slice(2);
const manifest = packages.resolve('@modelcontextprotocol/inspector/package.json');
const inspector = join(dirname(manifest), packages(manifest).bin.inspector);
const home = mkdtempSync(join(tmpdir(), 'inspector-'));
process.on('exit', () => rmSync(home, { recursive: true, force: true }));

// It opens addresses with this browser.
const here = dirname(fileURLToPath(import.meta.url));
writeFileSync(join(home, 'browser'), `#!/bin/sh\nexec "${python}" "${here}/oauth_open.py" "$1"\n`);
chmodSync(join(home, 'browser'), 0o755);

const callback = `http://127.0.0.1:${port}/oauth/callback`;
const options = ['--format', 'json', '--transport', 'http', '--callback-url', callback, '--method', 'tools/list'];
const { stdout } = await promisify(execFile)(process.execPath, [inspector, '--cli', ...options, '--', url], {
  env: {
    ...process.env,
    HOME: home,
    BROWSER: join(home, 'browser'),
    MCP_AUTO_OPEN_ENABLED: 'true',
    SIGN_IN: `${callback} ${username} ${password}`,
  },
  timeout: 120_000,
});
const { result } = JSON.parse(stdout);
const tools = result.tools.map((tool) => tool.name);
assert(tools.includes('add_task'), tools.join(' '));
console.log('ok');
