// forward.mjs URL AUTHORIZATION — a loopback forwarder that adds the header which the conformance
// suite cannot send. Everything else passes as it is, both ways and while it comes: the suite also
// looks at foreign Host headers, and at what happens when it hangs up. Prints its own URL.
import { createServer, request } from 'node:http';

const [target, authorization] = process.argv.slice(2);
const { hostname, port, pathname } = new URL(target);

const server = createServer((asked, answer) => {
  const headers = [...asked.rawHeaders, 'Authorization', authorization];
  const onward = request({ hostname, port, method: asked.method, path: asked.url, headers, agent: false });
  onward.on('response', (got) => {
    answer.writeHead(got.statusCode, got.rawHeaders);
    answer.flushHeaders();
    got.pipe(answer);
    got.on('error', () => answer.destroy());
  });
  onward.on('error', () => answer.destroy());
  answer.on('close', () => onward.destroy());
  asked.pipe(onward);
});

server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}${pathname}`));
