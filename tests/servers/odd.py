"""An MCP server over stdio that cuts, swells and asks back. Standard library only."""
import json
import os
import sys

TOOLS = ["cut", "big", "ask"]


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data):]


def send(message: dict) -> None:
    write(json.dumps(message, ensure_ascii=False).encode() + b"\n")


def text(size: int) -> str:
    return ("0123456789abcdé" * (size // 15 + 1))[:size]


def call(name: str, arguments: dict) -> str:
    if name == "big":
        return text(arguments["size"])
    if name == "ask":
        send({"jsonrpc": "2.0", "id": "p-1", "method": "ping"})
        return sys.stdin.readline()
    return arguments["text"]


def result(method: str, params: dict) -> dict:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
    if method == "tools/call":
        said = call(params["name"], params.get("arguments") or {})
        return {"content": [{"type": "text", "text": said}]}
    return {}


def main() -> None:
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        if "id" not in request or "method" not in request:
            continue
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] == "server/discover":
            answer["error"] = {"code": -32601, "message": "no such method"}
        else:
            answer["result"] = result(request["method"], request.get("params") or {})
        if (request.get("params") or {}).get("name") == "cut":
            for byte in json.dumps(answer, ensure_ascii=False).encode() + b"\n":
                write(bytes([byte]))
        else:
            send(answer)


main()
