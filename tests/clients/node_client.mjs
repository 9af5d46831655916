// The TypeScript SDK, 2.x. Modes: legacy, which is its default, and auto, which negotiates the newest version.

import { INVALID_PARAMS, headers, packages, run } from './contract.mjs';

const { Client, ProtocolError, SSEClientTransport, StreamableHTTPClientTransport } = packages(
  '@modelcontextprotocol/client',
);
const { StdioClientTransport } = packages('@modelcontextprotocol/client/stdio');

function open(transport, [first, ...rest]) {
  switch (transport) {
    case 'http':
      return new StreamableHTTPClientTransport(new URL(first), { requestInit: { headers } });
    case 'sse':
      return new SSEClientTransport(new URL(first), { requestInit: { headers } });
    default:
      return new StdioClientTransport({ command: first, args: rest });
  }
}

await run(
  async (kind, target, mode) => {
    const transport = open(kind, target);
    const options = mode === 'auto' ? { versionNegotiation: { mode: 'auto' } } : {};
    const client = new Client({ name: 'tribune-test', version: '1.0.0' }, options);
    await client.connect(transport);
    return {
      protocolVersion: client.getNegotiatedProtocolVersion(),
      tools: async () => (await client.listTools()).tools,
      call: (name, args) => client.callTool({ name, arguments: args }),
      resources: async () => (await client.listResources()).resources,
      prompts: async () => (await client.listPrompts()).prompts,
      isUnknownTool: (error) => error instanceof ProtocolError && error.code === INVALID_PARAMS,
      close: async () => {
        if (kind === 'http') await transport.terminateSession();
        await client.close();
      },
    };
  },
  ['legacy', 'auto'],
);
