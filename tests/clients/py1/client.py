"""python client.py URL KEY TOOL ARGUMENTS — a client on the Python SDK 1.x.

Prints one line of JSON: {"version", "tools", "result"}. Any failure ends it with an error.
"""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main(url: str, key: str, tool: str, given: str) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    async with streamablehttp_client(url, headers=headers) as (reader, writer, _):
        async with ClientSession(reader, writer) as session:
            version = (await session.initialize()).protocolVersion
            tools = [one.name for one in (await session.list_tools()).tools]
            result = await session.call_tool(tool, json.loads(given))
            answer = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            print(json.dumps({"version": version, "tools": tools, "result": answer}))


asyncio.run(main(*sys.argv[1:]))
