"""Which addresses a provider may lead us to: judged by name before the look-up, and by address after it."""

import ipaddress

import pytest

from core.http.addresses import AllowedOrigins, Origin, is_public, parse_origin
from core.http.messages import DownloadRefused

ALLOWED = AllowedOrigins.of(
    hosts=("fal.media", "*.fal.media"),
    named=("127.0.0.1:8900", "Sim.Example:81", "store.example", "[::1]:9000"),
)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://fal.media/a.mp4", Origin("https", "fal.media", 443)),
        ("HTTPS://V3.FAL.media:443/a?b=c#d", Origin("https", "v3.fal.media", 443)),
        ("http://127.0.0.1:8900/files/1", Origin("http", "127.0.0.1", 8900)),
        ("http://[::1]:9000/", Origin("http", "::1", 9000)),
    ],
)
def test_a_plain_address_is_read(url: str, origin: Origin) -> None:
    assert parse_origin(url) == origin


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/files/1",
        "//fal.media/a",
        "ftp://fal.media/a",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://",
        "https:///a",
        "https://user@fal.media/a",
        "https://user:word@fal.media/a",
        "https://@fal.media/a",
        "https://fal.media@127.0.0.1/a",
        "https://fal.media\\@127.0.0.1/a",
        "https://fal.media:443:80/a",
        "https://fal.media:0/a",
        "https://fal.media:/a",
        "https://fal.media:99999/a",
        "https://fal.media:x/a",
        "https://fal.media./a",
        "https://.fal.media/a",
        "https://fal..media/a",
        "https://fal%2emedia/a",
        "https://fal.media\n.evil.example/a",
        " https://fal.media/a",
        "https://fal.media /a",
        "https://fal\u3002media/a",
        "https://f\u00e4l.media/a",
        "https://\uff11\uff12\uff17.0.0.1/a",
        "http://0x7f.1/",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://127.1/",
        "http://0177.0.0.1/",
        "http://127.0.0.0x1/",
        "http://127.0.0.1./",
        "http://[::1%25eth0]/",
        "http://[::1",
        "http://[127.0.0.1]/",
        "https://" + "a" * 64 + ".fal.media/",
        "https://fal.media/\ud800",
    ],
)
def test_a_doubtful_spelling_is_refused(url: str) -> None:
    with pytest.raises(DownloadRefused):
        parse_origin(url)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://fal.media/a", True),
        ("https://v3.fal.media/a", True),
        ("https://a.b.fal.media/a", True),
        ("https://fal.media:444/a", False),
        ("http://fal.media/a", False),
        ("https://evilfal.media/a", False),
        ("https://fal.media.evil.example/a", False),
        ("https://evil.example/fal.media", False),
        ("http://127.0.0.1:8900/a", True),
        ("https://127.0.0.1:8900/a", True),
        ("http://127.0.0.1:8901/a", False),
        ("http://127.0.0.1/a", False),
        ("http://localhost:8900/a", False),
        ("http://[::ffff:127.0.0.1]:8900/a", False),
        ("http://[::1]:9000/a", True),
        ("http://[0:0:0:0:0:0:0:1]:9000/a", False),
        ("http://sim.example:81/a", True),
        ("http://sim.example/a", False),
        ("https://store.example/a", True),
        ("http://store.example/a", True),
        ("https://store.example:8443/a", False),
        ("https://93.184.216.34/a", False),
    ],
)
def test_only_allowed_hosts_are_asked(url: str, allowed: bool) -> None:
    assert ALLOWED.is_allowed(parse_origin(url)) is allowed


@pytest.mark.parametrize(
    "text", ["", "http://sim.example", "sim.example/a", "user@sim.example", "0x7f.1", "a b"]
)
def test_a_setting_that_is_no_host_is_an_error_and_not_ignored(text: str) -> None:
    with pytest.raises(ValueError, match="host"):
        AllowedOrigins.of(named=(text,))


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("127.0.0.1", False),
        ("127.255.255.254", False),
        ("0.0.0.0", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("192.0.0.1", False),
        ("192.0.2.1", False),
        ("192.88.99.1", False),
        ("198.18.0.1", False),
        ("224.0.0.1", False),
        ("240.0.0.1", False),
        ("255.255.255.255", False),
        ("::", False),
        ("::1", False),
        ("::ffff:93.184.216.34", False),
        ("::ffff:127.0.0.1", False),
        ("::127.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b:1::7f00:1", False),
        ("2002:7f00:1::", False),
        ("2001:0:7f00:1::", False),
        ("fe80::1", False),
        ("fec0::1", False),
        ("fc00::1", False),
        ("fd12:3456::1", False),
        ("ff02::1", False),
        ("2001:db8::1", False),
    ],
)
def test_only_addresses_of_the_public_internet_are_public(text: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(text)) is public
