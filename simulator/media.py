"""The videos. Pure: bytes in, bytes out; see media/README.md for how the three clips were made."""

import struct
from functools import cache
from pathlib import Path

from simulator.jobs import Job

_FOLDER = Path(__file__).parent / "media"
_CLIPS = {"9:16": "portrait.mp4", "1:1": "square.mp4"}
_OTHER_CLIP = "landscape.mp4"


def video_of(job: Job) -> bytes:
    """A playable MP4 whose bytes are this job's alone: the clip, and a box that players skip with the id."""
    clip = _CLIPS.get(str(job.input.get("aspect_ratio")), _OTHER_CLIP)
    identity = job.request_id.encode()
    return _read(clip) + struct.pack(">I4s", 8 + len(identity), b"free") + identity


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """The first and last byte of a single `Range`; None when there is none or it is not understood.

    Raises:
        ValueError: a range that holds no byte of the file (416).
    """
    if header is None or not header.startswith("bytes=") or "," in header:
        return None
    first, dash, last = header.removeprefix("bytes=").strip().partition("-")
    if not dash or not (first.isdigit() or (not first and last.isdigit())) or (last and not last.isdigit()):
        return None
    if not first:
        length = min(int(last), size)
        if length == 0:
            raise ValueError("an empty range")
        return size - length, size - 1
    start, end = int(first), min(int(last), size - 1) if last else size - 1
    if start >= size:
        raise ValueError("the range starts behind the end")
    return None if end < start else (start, end)


@cache
def _read(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()
