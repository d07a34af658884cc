"""Reading a body up to a cap, so that no answer can fill the memory, compressed ones included."""

import zlib
from collections.abc import AsyncIterable

GZIP_OR_ZLIB = 47  # zlib's own code: 15 bits of window, plus 32 to detect the header


async def capped_body(chunks: AsyncIterable[bytes], *, encoding: str, limit: int) -> tuple[bytes, bool]:
    """The first `limit` bytes of the decoded body, and whether there were more.

    We ask for plain bodies; a server that compresses all the same is understood for gzip and deflate. A body
    whose compression is broken is returned as it came: it is the reader's to find it unusable.
    """
    packed = encoding.strip().lower() in ("gzip", "x-gzip", "deflate")
    kept = bytearray()
    async for chunk in chunks:
        kept += chunk
        if len(kept) > limit:
            break
    body, more = bytes(kept[:limit]), len(kept) > limit
    if not packed:
        return body, more
    unpacker = zlib.decompressobj(GZIP_OR_ZLIB)
    try:
        plain = unpacker.decompress(body, limit)
    except zlib.error:
        return body, more
    return plain, more or bool(unpacker.unconsumed_tail)
