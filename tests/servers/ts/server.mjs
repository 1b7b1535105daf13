// node server.mjs PORT [dual|legacy|modern] [NAME]
//
// A streamable HTTP server on the official TypeScript SDK 2.x, at /mcp on 127.0.0.1. `legacy` keeps
// sessions (2025-11-25 and older), `modern` is stateless (2026-07-28), `dual` does both on one URL.
// PORT 0 takes a free one. Prints "listening PORT". Its tools give the same answer to the same
// call, but for `add_tool`, which makes the list one longer and says so to everyone who listens.
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { McpServer, createMcpHandler, isLegacyRequest } from '@modelcontextprotocol/server';
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import { z } from 'zod';

const [port = '0', era = 'dual', name = 'ts'] = process.argv.slice(2);
const sessions = new Map();
let added = 0;

const text = value => ({ content: [{ type: 'text', text: value }] });
const structured = value => ({ ...text(JSON.stringify(value)), structuredContent: value });
const readOnly = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };

function build() {
  const server = new McpServer({ name, version: '1.0.0' }, { capabilities: { tools: { listChanged: true } } });
  server.registerTool('whoami', { description: 'The name of this server', annotations: readOnly },
    async () => text(name));
  server.registerTool('greet', {
    title: 'Greet', description: 'Greets someone: “Grüß Gott”, 你好, مرحبا',
    inputSchema: z.object({ who: z.string().describe('Whom to greet') }), annotations: readOnly,
  }, async ({ who }) => text(`Grüß Gott, ${who}! \u2028 你好 👩‍🚀 \u0000 "\\/" 12345678901234567890`));
  server.registerTool('numbers', {
    description: 'Numbers that a careless reader would change',
    outputSchema: z.object({ largest: z.number(), huge: z.number(), tiny: z.number(), tenth: z.number() }),
    annotations: readOnly,
  }, async () => structured({ largest: Number.MAX_SAFE_INTEGER, huge: 1.7976931348623157e308, tiny: 5e-324, tenth: 0.1 + 0.2 }));
  server.registerTool('measure', {
    description: 'Counts the characters of a text',
    inputSchema: z.object({ text: z.string(), unit: z.enum(['code_points', 'utf16', 'bytes']).default('code_points') }),
    outputSchema: z.object({ text: z.string(), unit: z.string(), length: z.number().int() }),
    annotations: readOnly,
  }, async ({ text, unit }) => structured({ text, unit, length: { code_points: [...text].length, utf16: text.length, bytes: Buffer.byteLength(text) }[unit] }));
  server.registerTool('fail', { description: 'Always fails', annotations: readOnly },
    async () => ({ ...text('it failed, as it always does'), isError: true }));
  server.registerTool('slow', {
    description: 'Reports its progress in steps',
    inputSchema: z.object({ steps: z.number().int().min(1).max(20), step_ms: z.number().int().min(0).max(1000) }),
    annotations: readOnly,
  }, async ({ steps, step_ms }, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (let step = 1; step <= steps; step++) {
      await new Promise(done => setTimeout(done, step_ms));
      if (progressToken !== undefined) await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: step, total: steps } });
    }
    return text(`${steps} steps`);
  });
  server.registerTool('add_tool', { description: 'Adds one tool to this server' }, async () => {
    added += 1;
    for (const one of sessions.values()) register(one.server, added);
    modern.notify.toolsChanged();
    return text(`added_${added}`);
  });
  for (let index = 1; index <= added; index++) register(server, index);
  return server;
}

function register(server, index) {
  server.registerTool(`added_${index}`, { description: `Added later, as number ${index}` }, async () => text(`added_${index}`));
}

const modern = createMcpHandler(build, { legacy: 'reject' });
const answerModern = toNodeHandler(modern);

async function answerLegacy(request, response, body) {
  const id = request.headers['mcp-session-id'];
  const session = sessions.get(id);
  if (session) return session.transport.handleRequest(request, response, body);
  if (id || body?.method !== 'initialize') {
    response.writeHead(id ? 404 : 400, { 'Content-Type': 'application/json' });
    return response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32001, message: id ? 'Session not found' : 'Session required' } }));
  }
  const server = build();
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: made => { sessions.set(made, { server, transport }); },
    onsessionclosed: closed => { sessions.delete(closed); },
  });
  await server.connect(transport);
  return transport.handleRequest(request, response, body);
}

const http = createServer(async (request, response) => {
  try {
    if (new URL(request.url, 'http://127.0.0.1').pathname !== '/mcp') { response.writeHead(404); return response.end(); }
    let raw = '';
    for await (const chunk of request.setEncoding('utf8')) raw += chunk;
    const body = raw ? JSON.parse(raw) : undefined;
    const legacy = await isLegacyRequest(await toWebRequest(request, body), body);
    if (era === 'legacy' || (legacy && era === 'dual')) await answerLegacy(request, response, body);
    else await answerModern(request, response, body);
  } catch (error) {
    if (!response.headersSent) response.writeHead(error instanceof SyntaxError ? 400 : 500, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32700, message: String(error) } }));
  }
});
http.listen(Number(port), '127.0.0.1', () => console.log(`listening ${http.address().port}`));
