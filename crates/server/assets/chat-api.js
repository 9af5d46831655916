// Requests of the chat to the server. All addresses are on the page's own origin, below its base path.

import { sentence } from './chat-dom.js';

const PROTOCOL = '2026-07-28';
const META = {
  'io.modelcontextprotocol/protocolVersion': PROTOCOL,
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** An error for a person; `passing` if the same request may succeed later. */
export class Failure extends Error {
  constructor(message, { status = 0, passing = true } = {}) {
    super(message);
    this.status = status;
    this.passing = passing;
  }
}

/** An idempotency key. (`crypto.randomUUID` needs HTTPS.) */
export function requestId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

export class Api {
  #base;
  #calls = 0;

  constructor(base) {
    this.#base = base;
  }

  /** Yields `{name, data}` for each event of a turn. */
  async *chat(request, signal) {
    const headers = { 'Content-Type': 'application/json', Accept: 'text/event-stream' };
    const response = await this.#send('/chat', { method: 'POST', headers, body: JSON.stringify(request), signal });
    try {
      yield* events(response);
    } catch (error) {
      if (signal.aborted || !(error instanceof TypeError)) throw error;
      throw new Failure('The connection broke before the answer was complete.');
    }
  }

  /** A page of a list: `{items, next}`; `next` are the parameters of the next page. */
  async page(path, parameters) {
    const response = await this.#send(`${path}?${new URLSearchParams(parameters)}`, {
      headers: { Accept: 'application/json' },
    });
    return { items: await json(response), next: nextPage(response.headers.get('Link')) };
  }

  /** Calls a tool over MCP and returns its structured result. */
  async tool(profile, name, args) {
    this.#calls += 1;
    const params = { _meta: META, name, arguments: args };
    const response = await this.#send(`/mcp/${profile}`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': PROTOCOL,
        'Mcp-Method': 'tools/call',
        'Mcp-Name': name,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: this.#calls, method: 'tools/call', params }),
    });
    const { result, error } = await rpcAnswer(response);
    if (error) throw new Failure(sentence(error.message));
    if (result.isError) throw new Failure(sentence(result.content?.[0]?.text ?? 'the tool failed'));
    return result.structuredContent;
  }

  async signIn(token) {
    const headers = { 'Content-Type': 'application/json' };
    await this.#send('/session', { method: 'POST', headers, body: JSON.stringify({ token }) });
  }

  async signOut() {
    await this.#send('/session', { method: 'DELETE' });
  }

  async #send(path, options) {
    let response;
    try {
      response = await fetch(this.#base + path, { ...options, credentials: 'same-origin' });
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new Failure('Tribune is unreachable. Check that it runs and that you are online.');
    }
    if (!response.ok) throw await refusal(response);
    return response;
  }
}

async function refusal(response) {
  const { status } = response;
  // Client errors are permanent, except for timeouts, conflicts and rate limits.
  const passing = status >= 500 || status === 408 || status === 409 || status === 429;
  const body = await response.json().catch(() => null);
  const message = body?.error?.message ?? `the server answered ${status}`;
  return new Failure(sentence(message), { status, passing });
}

async function json(response) {
  try {
    return await response.json();
  } catch {
    throw new Failure('The server sent an unreadable answer.');
  }
}

async function rpcAnswer(response) {
  const type = response.headers.get('Content-Type') ?? '';
  if (!type.startsWith('text/event-stream')) return json(response);
  for await (const { data } of events(response)) {
    if (data.result || data.error) return data;
  }
  throw new Failure('The server sent an incomplete answer.');
}

/** Server-sent events as they arrive; comments are keep-alives. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let event = { name: 'message', data: [] };
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop();
      for (const line of lines.map((line) => line.replace(/\r$/, ''))) {
        if (line !== '') {
          readField(event, line);
          continue;
        }
        if (event.data.length > 0) yield { name: event.name, data: JSON.parse(event.data.join('\n')) };
        event = { name: 'message', data: [] };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function readField(event, line) {
  const colon = line.indexOf(':');
  const field = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
  if (field === 'event') event.name = value;
  if (field === 'data') event.data.push(value);
}

/** The parameters of the `rel="next"` link, without its address: the page may be open at another one. */
function nextPage(link) {
  const found = /<([^>]*)>\s*;[^,]*\brel="?next"?/.exec(link ?? '');
  return found && Object.fromEntries(new URL(found[1], document.baseURI).searchParams);
}
