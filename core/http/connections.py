"""The connections under every exchange: they can be watched before each write, and they never leak."""

import ssl
from collections.abc import Callable, Iterable
from typing import Any

import httpcore2

Watch = Callable[[], None]


class WatchedBackend(httpcore2.AnyIOBackend):
    """Opens TCP connections that call `before_write` before each write of HTTP bytes."""

    def __init__(self, before_write: Watch | None = None) -> None:
        self._before_write = before_write

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        stream = await super().connect_tcp(host, port, timeout, local_address, socket_options)
        return _WatchedStream(stream, self._before_write)


class _WatchedStream(httpcore2.AsyncNetworkStream):
    """A connection. The bytes of a TLS handshake are not HTTP bytes and pass unwatched."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, before_write: Watch | None) -> None:
        self._stream = stream
        self._before_write = before_write

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._before_write is not None:
            self._before_write()
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        try:
            stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            # The library closes it after an error but not after a cancellation, and all our limits of time
            # cancel: without this, every server that hangs in its handshake would cost a socket.
            await self._stream.aclose()
            raise
        return _WatchedStream(stream, self._before_write)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
