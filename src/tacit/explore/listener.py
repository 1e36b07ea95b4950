"""An HTTP server that takes a bounded number of connections."""

from __future__ import annotations

from typing import Any

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream

MOST_CONNECTIONS = 300  # a browser opens some six; more would use up the files of the process


class Listener(HTTPServer):
    """Closes a connection at once where too many are open, so that the others are served."""

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        if len(self._connections) >= MOST_CONNECTIONS:
            stream.close()
        else:
            super().handle_stream(stream, address)
