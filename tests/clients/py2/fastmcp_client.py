"""python fastmcp_client.py URL KEY TOOL ARGUMENTS — the client of FastMCP 4.

Prints one line of JSON: {"tools", "result"}. Any failure ends it with an error.
"""

import asyncio
import json
import sys

from fastmcp import Client


async def main(url: str, key: str, tool: str, given: str) -> None:
    async with Client(url, auth=key) as client:
        tools = [one.name for one in await client.list_tools()]
        result = await client.call_tool_mcp(tool, json.loads(given))
        answer = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        print(json.dumps({"tools": tools, "result": answer}))


asyncio.run(main(*sys.argv[1:]))
