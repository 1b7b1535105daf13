"""An MCP server whose tools write down each run before they answer. Standard library only.

ledger.py PORT FILE     over HTTP; prints `listening PORT`
ledger.py stdio FILE    over standard input and output

A run is a line of FILE: the id in the call's arguments. `hold_ms` there makes the first run of an id
wait before its answer. Process ids go to FILE.pids; while FILE.down is there, no process starts.
"""
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Arguments may be nested thousands of levels deep.
sys.setrecursionlimit(20_000)

FILE = sys.argv[2]
HINTS = {"reads": {"readOnlyHint": True}, "repeats": {"readOnlyHint": False, "idempotentHint": True}, "writes": {}}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}, "annotations": HINTS[name]} for name in HINTS]


def append(path: str, line: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def run(arguments: dict) -> str:
    append(FILE, arguments["id"])
    with open(FILE, encoding="utf-8") as file:
        first = file.read().split("\n").count(arguments["id"]) == 1
    if first:
        time.sleep(arguments.get("hold_ms", 0) / 1000)
    return arguments["id"]


def answer(request: dict) -> dict:
    method, params = request["method"], request.get("params") or {}
    whole = {"jsonrpc": "2.0", "id": request["id"]}
    if method == "initialize":
        whole["result"] = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "ledger", "version": "1"},
        }
    elif method == "tools/list":
        whole["result"] = {"tools": TOOLS}
    elif method == "tools/call":
        whole["result"] = {"content": [{"type": "text", "text": run(params["arguments"])}]}
    elif method == "ping":
        whole["result"] = {}
    else:
        whole["error"] = {"code": -32601, "message": "no such method"}
    return whole


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes, which would otherwise wait for each other's acknowledgement.
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        wanted = "id" in request and "method" in request
        body = json.dumps(answer(request)).encode() if wanted else b""
        self.send_response(200 if wanted else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    if os.path.exists(FILE + ".down"):
        sys.exit("not now")
    append(FILE + ".pids", str(os.getpid()))
    if sys.argv[1] != "stdio":
        server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
        print("listening", server.server_port, flush=True)
        server.serve_forever()
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        if "id" in request and "method" in request:
            print(json.dumps(answer(request)), flush=True)


main()
