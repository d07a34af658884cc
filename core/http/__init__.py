"""Outgoing HTTP: one request is one request, with explicit limits of time and size and no hidden retry."""

from core.http.addresses import AllowedOrigins
from core.http.deadline import Deadline, boot_clock
from core.http.download import Downloaded, Sink, download
from core.http.exchange import send_once
from core.http.messages import (
    AnswerLost,
    DownloadFailed,
    DownloadRefused,
    HttpRequest,
    HttpResponse,
    NotSent,
    ReadFailed,
)
from core.http.reads import ReadClient, get_blocking
from core.http.sniff import sniff_video

__all__ = [
    "AllowedOrigins",
    "AnswerLost",
    "Deadline",
    "DownloadFailed",
    "DownloadRefused",
    "Downloaded",
    "HttpRequest",
    "HttpResponse",
    "NotSent",
    "ReadClient",
    "ReadFailed",
    "Sink",
    "boot_clock",
    "download",
    "get_blocking",
    "send_once",
    "sniff_video",
]
