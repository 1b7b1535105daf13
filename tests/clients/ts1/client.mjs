// node client.mjs URL KEY TOOL ARGUMENTS — a client on the TypeScript SDK 1.x.
// Prints one line of JSON: {"version", "tools", "result"}. Any failure ends it with an error.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [url, key, tool, given] = process.argv.slice(2);
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${key}` } } });
const client = new Client({ name: 'ts1', version: '1' }, { capabilities: { elicitation: {}, sampling: {}, roots: {} } });
await client.connect(transport);
const tools = (await client.listTools()).tools.map(one => one.name);
const result = await client.callTool({ name: tool, arguments: JSON.parse(given) });
console.log(JSON.stringify({ version: transport.protocolVersion, tools, result }));
await transport.terminateSession();
await client.close();
