// node client.mjs URL KEY TOOL ARGUMENTS [MODE] — a client on the TypeScript SDK 2.x.
// MODE: auto (asks for 2026-07-28 first), legacy, or a version to insist on.
// Prints one line of JSON: {"version", "tools", "result"}. Any failure ends it with an error.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url, key, tool, given, mode = 'auto'] = process.argv.slice(2);
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${key}` } } });
const client = new Client({ name: 'ts2', version: '2' }, {
  capabilities: { elicitation: {}, sampling: {}, roots: {} },
  versionNegotiation: { mode: /^\d/.test(mode) ? { pin: mode } : mode },
  listChanged: { tools: { onChanged: () => {} } },
});
await client.connect(transport);
const tools = (await client.listTools()).tools.map(one => one.name);
const result = await client.callTool({ name: tool, arguments: JSON.parse(given) });
console.log(JSON.stringify({ version: client.getNegotiatedProtocolVersion(), tools, result }));
if (transport.sessionId) await transport.terminateSession();
await client.close();
