// The TypeScript SDK, 1.x: the `initialize` handshake only.

import { INVALID_PARAMS, headers, packages, run } from './contract.mjs';

const { Client } = packages('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = packages('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { SSEClientTransport } = packages('@modelcontextprotocol/sdk/client/sse.js');
const { StdioClientTransport } = packages('@modelcontextprotocol/sdk/client/stdio.js');
const { McpError } = packages('@modelcontextprotocol/sdk/types.js');

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

await run(async (kind, target) => {
  const transport = open(kind, target);
  // Only the transport knows the negotiated version.
  let protocolVersion;
  const tellTransport = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    protocolVersion = version;
    tellTransport?.(version);
  };
  const client = new Client({ name: 'tribune-test', version: '1.0.0' });
  await client.connect(transport);
  return {
    protocolVersion,
    tools: async () => (await client.listTools()).tools,
    call: (name, args) => client.callTool({ name, arguments: args }),
    resources: async () => (await client.listResources()).resources,
    prompts: async () => (await client.listPrompts()).prompts,
    isUnknownTool: (error) => error instanceof McpError && error.code === INVALID_PARAMS,
    close: async () => {
      if (kind === 'http') await transport.terminateSession();
      await client.close();
    },
  };
});
