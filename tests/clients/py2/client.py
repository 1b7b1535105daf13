"""python client.py URL KEY TOOL ARGUMENTS [MODE] — a client on the Python SDK 2.x.

MODE: auto (asks for 2026-07-28 first), legacy, or a version to insist on.
Prints one line of JSON: {"version", "tools", "result"}. Any failure ends it with an error.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main(url: str, key: str, tool: str, given: str, mode: str = "auto") -> None:
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"})
    async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        version = client.session.protocol_version
        tools = [one.name for one in (await client.list_tools()).tools]
        result = await client.call_tool(tool, json.loads(given))
        answer = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        print(json.dumps({"version": version, "tools": tools, "result": answer}))


asyncio.run(main(*sys.argv[1:]))
