// The MCP Inspector's command line, one process for each request. Modes are its protocol eras.
//
// Beyond the contract, `--strict` makes it check the tools' schemas: an error-severity finding fails the list.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { headers, packages, run } from './contract.mjs';

const manifest = packages.resolve('@modelcontextprotocol/inspector/package.json');
const inspector = join(dirname(manifest), packages(manifest).bin.inspector);

// It keeps state in the home folder, so it gets its own.
const home = mkdtempSync(join(tmpdir(), 'inspector-'));
process.on('exit', () => rmSync(home, { recursive: true, force: true }));

/** The exit code that says: the answer is here, and it has `isError`. */
const TOOL_IS_ERROR = 5;

class Refused extends Error {
  constructor(stderr) {
    super(`the inspector says: ${stderr.trim()}`);
    const envelope = stderr.split('\n').find((line) => line.startsWith('{"error"'));
    this.code = envelope && JSON.parse(envelope).error.code;
  }
}

/** Its result, whatever it is about. Options come first: after `--`, all is the target's. */
function inspect(target, options) {
  const args = [inspector, '--cli', '--format', 'json', ...options, '--', ...target];
  const settings = { env: { ...process.env, HOME: home }, timeout: 120_000 };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, settings, (error, stdout, stderr) => {
      const answered = !error || (error.code === TOOL_IS_ERROR && stdout !== '');
      if (answered) {
        resolve(JSON.parse(stdout).result);
      } else {
        reject(new Refused(stderr || String(error)));
      }
    });
  });
}

await run(
  async (transport, target, era) => {
    const sent = transport === 'stdio' ? [] : Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]);
    const ask = (...options) => inspect(target, ['--transport', transport, '--protocol-era', era, ...sent, ...options]);
    return {
      protocolVersion: (await ask('--method', 'initialize')).protocolVersion,
      tools: async () => (await ask('--method', 'tools/list', '--strict')).tools,
      call: (name, args) =>
        ask('--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)),
      resources: async () => (await ask('--method', 'resources/list')).resources,
      prompts: async () => (await ask('--method', 'prompts/list')).prompts,
      // It looks the tool up in tools/list and does not send calls to unknown tools.
      isUnknownTool: (error) => error.code === 'tool_not_found',
      close: async () => {},
    };
  },
  ['legacy', 'auto', 'modern'],
);
