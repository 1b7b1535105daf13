"""An MCP server over stdio for what goes wrong with local programs. Standard library only.

Words on its command line say how it starts and speaks:
  noisy     prints what is no message before each answer
  bom       begins its output with a byte order mark
  late=S    needs S seconds before it reads
  refuse    answers `initialize` with an error
  mute      answers nothing
  quit      ends at the first message
  starts=F  adds a byte to the file F when it starts
  unless=F  ends at once when there is a file F
  stubborn  takes neither the end of its input nor SIGTERM for an answer
Its tools say what it does later.
"""
import json
import os
import signal
import sys
import time

WORDS = sys.argv[1:]
TOOLS = ["t", "env", "pid", "die", "hold", "endless", "pieces", "errors"]
NOISE = (
    b"Server 1.0 is ready.\n\n   \n\r\n[]\n5\nnull\n\"text\"\ntrue\n\x1b[32mgreen\x1b[0m\n"
    b"{\"half\": \n{\"level\":\"info\",\"message\":\"a log line\"}\n\xff\xfe\n"
)


def write(data: bytes, to: int = 1) -> None:
    while data:
        data = data[os.write(to, data):]


def errors(size: int, lines: bool) -> str:
    write((b"e" * 99 + b"\n" if lines else b"e" * 100) * (size // 100), to=2)
    return "said"


def call(name: str, arguments: dict) -> str:
    if name == "env":
        return json.dumps(dict(os.environ))
    if name == "pid":
        return str(os.getpid())
    if name == "die":
        os._exit(1)
    if name == "errors":
        return errors(arguments["size"], arguments["lines"])
    if name == "pieces":
        return "0123456789abcdef" * (arguments["size"] // 16)
    while name == "endless":
        write(b"x" * 65536)
    return name


def result(method: str, params: dict) -> dict:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "rough", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
    if method == "tools/call":
        said = call(params["name"], params.get("arguments") or {})
        return {"content": [{"type": "text", "text": said}]}
    return {}


def answer(request: dict) -> None:
    message = {"jsonrpc": "2.0", "id": request["id"]}
    method, params = request["method"], request.get("params") or {}
    if method == "server/discover" or (method == "initialize" and "refuse" in WORDS):
        message["error"] = {"code": -32601, "message": "not here"}
    else:
        message["result"] = result(method, params)
    line = json.dumps(message).encode() + b"\n"
    step = 1024 if params.get("name") == "pieces" else len(line)
    if "noisy" in WORDS:
        write(NOISE)
    for start in range(0, len(line), step):
        write(line[start:start + step])


def main() -> None:
    if "stubborn" in WORDS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for word in WORDS:
        if word.startswith("late="):
            time.sleep(float(word[5:]))
        if word.startswith("starts="):
            with open(word[7:], "ab") as starts:
                starts.write(b".")
        if word.startswith("unless=") and os.path.exists(word[7:]):
            sys.exit(3)
    if "bom" in WORDS:
        write(b"\xef\xbb\xbf")
    for line in iter(sys.stdin.readline, ""):
        if "quit" in WORDS:
            return
        request = json.loads(line)
        held = (request.get("params") or {}).get("name") == "hold"
        if held:
            write(b"held\n", to=2)
        if "id" in request and "method" in request and "mute" not in WORDS and not held:
            answer(request)
    while "stubborn" in WORDS:
        time.sleep(60)


main()
