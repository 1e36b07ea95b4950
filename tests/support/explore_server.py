"""A server of `penchant explore` in the process of the test, to be visited."""

import asyncio
import contextlib
import os
import stat

from tornado.httpclient import AsyncHTTPClient, HTTPRequest

from penchant.explore.server import Explorer
from penchant.explore.views import regularizer

VIEWS = {"regularizer": regularizer.VIEW}


def visiting(visits, **options):
    """Run `visits(explorer, get)` against a server of this process."""

    async def main():
        explorer = Explorer(VIEWS, **options)
        explorer.server.start()
        client = AsyncHTTPClient()

        async def get(path, **headers):
            headers = {key.replace("_", "-"): value for key, value in headers.items()}
            method = headers.pop("method", "GET")
            url = f"http://127.0.0.1:{explorer.port}{path}"
            sent = HTTPRequest(url, method=method, headers=headers, follow_redirects=False,
                               allow_nonstandard_methods=True)  # fmt: skip
            return await client.fetch(sent, raise_error=False)

        try:
            return await visits(explorer, get)
        finally:
            explorer.server.stop(wait=False)

    before = open_sockets()
    found = asyncio.run(main())
    # one that is left open is closed by the garbage collector, with a warning, in any later test
    assert open_sockets() <= before
    return found


def open_sockets():
    """How many sockets this process has open."""
    count = 0
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # the folder itself was open while it was listed
            count += stat.S_ISSOCK(os.fstat(int(name)).st_mode)
    return count
