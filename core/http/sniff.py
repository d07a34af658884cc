"""What a file is, judged by its first bytes and not by what a server says about it. Pure."""

SNIFF_BYTES = 4096  # enough for the first box of an MP4 and the header of a WebM

# Major brands of ISO base media files (ISO/IEC 14496-12, and the registry of brands) that hold moving
# pictures.
MP4_BRANDS = frozenset(
    b"isom iso2 iso3 iso4 iso5 iso6 iso7 iso8 iso9 isoa isob isoc mp41 mp42 mp71 avc1 hvc1 hev1 av01 dash"
    b" msdh M4V  M4VH M4VP MSNV 3gp4 3gp5 3gp6 3gp7 cmfc cmf2 f4v  XAVC".split()
)
EBML_MAGIC = b"\x1a\x45\xdf\xa3"
EBML_DOCTYPE = b"\x42\x82"


def sniff_video(first_bytes: bytes) -> str | None:
    """`video/mp4`, `video/quicktime` or `video/webm` by the first bytes (4 KiB are enough), else None."""
    if first_bytes[4:8] == b"ftyp":
        return _sniff_iso(first_bytes)
    if first_bytes.startswith(EBML_MAGIC):
        return _sniff_ebml(first_bytes)
    return None


def _sniff_iso(first_bytes: bytes) -> str | None:
    size = int.from_bytes(first_bytes[:4], "big")
    if size < 16 or size > SNIFF_BYTES:
        return None
    major = first_bytes[8:12]
    if major == b"qt  ":
        return "video/quicktime"
    return "video/mp4" if major.strip() in MP4_BRANDS else None


def _sniff_ebml(first_bytes: bytes) -> str | None:
    at = first_bytes.find(EBML_DOCTYPE, 4, 64)
    if at < 0:
        return None
    # A one-byte length (its top bit set) is the only form in use: the name has four letters.
    length = first_bytes[at + 2] & 0x7F if len(first_bytes) > at + 2 else 0
    return "video/webm" if first_bytes[at + 3 : at + 3 + length].rstrip(b"\0") == b"webm" else None
