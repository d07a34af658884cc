"""Ids: made by the client for requests, by us for rows, derived for providers."""

import hashlib
import hmac
import re
import uuid

import uuid_utils
from django.conf import settings

CLIENT_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
BATCH_PREFIX = "b_"  # ids of batch items; a client may not send one
_UUID = re.compile(
    r"(?:urn:uuid:)?\{?[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}\}?"
)


def new_id() -> uuid.UUID:
    """A version 7 UUID: rows made together lie together in the index."""
    return uuid.UUID(bytes=uuid_utils.uuid7().bytes)


def canonical_client_id(text: str) -> str | None:
    """The one spelling of a client's id, or None when it is not one.

    A UUID has many spellings (case, braces, hyphens); two spellings must not become two paid tasks.
    """
    if _UUID.fullmatch(text):
        return str(uuid.UUID(text))
    return text if CLIENT_ID.fullmatch(text) else None


def _keyed_digest(purpose: str, task_id: uuid.UUID) -> bytes:
    return hmac.new(settings.SECRET_KEY.encode(), f"{purpose}:{task_id}".encode(), hashlib.sha256).digest()


def idempotency_key(task_id: uuid.UUID) -> str:
    """The key sent with every attempt of a task: recomputable after any crash, and not the client's raw
    id.
    """
    digest = hashlib.sha256(f"oncereel-epoch-1:{task_id}".encode()).digest()
    return "or_" + digest[:20].hex()


def webhook_key(task_id: uuid.UUID) -> str:
    """The unguessable part of a task's call-back address; it names the task and proves that we made it."""
    return f"{task_id.hex}{_keyed_digest('webhook', task_id)[:16].hex()}"


def task_of_webhook_key(key: str) -> uuid.UUID | None:
    """The task whose key this is, or None for anything we did not make."""
    if not re.fullmatch(r"[0-9a-f]{64}", key):
        return None
    task_id = uuid.UUID(hex=key[:32])
    return task_id if hmac.compare_digest(webhook_key(task_id), key) else None
