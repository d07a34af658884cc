"""The key that signs webhooks, and the set of keys a receiver checks them with."""

import base64
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

KEY_FILE = "webhook_key.pem"


@dataclass(frozen=True, slots=True)
class Signer:
    """An Ed25519 key that lives as long as the simulator's folder."""

    key: Ed25519PrivateKey

    def sign(self, message: bytes) -> str:
        """The signature in hexadecimal, as the header carries it."""
        return self.key.sign(message).hex()

    def key_set(self) -> dict[str, Any]:
        """The JWKS document with the public key."""
        raw = self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return {
            "keys": [
                {
                    "kty": "OKP",
                    "crv": "Ed25519",
                    "use": "sig",
                    "alg": "EdDSA",
                    "kid": hashlib.sha256(raw).hexdigest()[:16],
                    "x": base64.urlsafe_b64encode(raw).rstrip(b"=").decode(),
                }
            ]
        }


def load_signer(folder: Path) -> Signer:
    """The key of this folder; it is made at the first call.

    Raises:
        ValueError: the file holds no Ed25519 key.
    """
    path = folder / KEY_FILE
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        made = Ed25519PrivateKey.generate()
        pem = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
    key = load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{KEY_FILE} does not hold an Ed25519 key")
    return Signer(key)


def webhook_message(*, request_id: str, user_id: str, timestamp: str, body: bytes) -> bytes:
    """What is signed: the three headers and the digest of the raw body, one a line."""
    return "\n".join([request_id, user_id, timestamp, hashlib.sha256(body).hexdigest()]).encode()
