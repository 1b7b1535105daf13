"""python server.py PORT [NAME]

A streamable HTTP server on the official Python SDK 2.x, at /mcp on 127.0.0.1, both eras on one URL.
PORT 0 takes a free one. Prints "listening PORT". Its tools give the same answer to the same call.
"""

import socket
import sys
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
name = sys.argv[2] if len(sys.argv) > 2 else "py"
server = MCPServer(name, version="1.0.0")
read_only = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


class Sum(BaseModel):
    """The sum, with what was added."""

    left: int
    right: int
    sum: int = Field(description="Exact, however large")


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int | None = None
    languages: list[str] = []


@server.tool(annotations=read_only)
def whoami() -> str:
    """The name of this server"""
    return name


@server.tool(annotations=read_only)
def add_integers(left: int, right: int) -> Sum:
    """Adds two integers of any size"""
    return Sum(left=left, right=right, sum=left + right)


@server.tool(annotations=read_only)
def describe_person(person: Person) -> Person:
    """Gives a person back, as structured content"""
    return person


@server.tool(annotations=read_only)
def reverse_text(text: str) -> str:
    """Reverses a text, code point by code point: 你好 → 好你"""
    return text[::-1]


@server.tool(annotations=read_only)
def big_integers() -> dict[str, Any]:
    """Integers that do not fit into 64 bits"""
    return {"two_to_64": 2**64, "ten_to_40": 10**40, "below_zero": -(2**63) - 1, "float": 1e22}


@server.tool(annotations=read_only)
def blocks() -> CallToolResult:
    """Several content blocks, with fields of the server's own"""
    return CallToolResult(
        content=[
            TextContent(type="text", text="first", _meta={"example.org/n": 12345678901234567890}),
            TextContent(type="text", text="second\n\ttabbed"),
        ],
        _meta={"example.org/trace": "Ünïcode"},
    )


@server.tool(annotations=read_only)
def broken() -> str:
    """Always fails"""
    raise ValueError("it failed, as it always does")


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", port))
    print(f"listening {listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])
