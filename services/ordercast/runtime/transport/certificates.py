"""How long a certificate is good: read from the file itself, since ssl tells it only of the other side's.

A certificate is DER: tag, length and value, one in the other (RFC 5280, 4.1). What is signed is the first part,
and in it the validity stands behind version, serial number, algorithm and issuer.
"""

import base64
from datetime import UTC, datetime
from typing import NamedTuple

BEGIN, END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
SEQUENCE, VERSION, UTC_TIME = 0x30, 0xA0, 0x17


class Validity(NamedTuple):
    """In seconds since 1970."""

    begins_s: float
    ends_s: float


def validity(pem: bytes) -> Validity:
    """Return how long the first certificate is valid. Raises ValueError if there is none, or it cannot be read."""
    begin, end = pem.find(BEGIN), pem.find(END)
    if begin < 0 or end < begin:
        raise ValueError("there is no certificate")
    try:
        _, certificate, _ = _part(base64.b64decode(pem[begin + len(BEGIN) : end]))
        _, rest, _ = _part(certificate)
        tag, _, behind = _part(rest)
        if tag == VERSION:
            rest = behind
        for _ in ("serial number", "algorithm", "issuer"):
            _, _, rest = _part(rest)
        tag, times, _ = _part(rest)
        if tag != SEQUENCE:
            raise ValueError("there is no validity where it should be")
        first, begins, behind = _part(times)
        second, ends, _ = _part(behind)
        return Validity(_time(first, begins), _time(second, ends))
    except IndexError:
        raise ValueError("the certificate is cut off") from None


def _part(der: bytes) -> tuple[int, bytes, bytes]:
    """Tag and value of the first part, and what follows it."""
    size, begin = der[1], 2
    if size & 0x80:
        begin += size & 0x7F
        size = int.from_bytes(der[2:begin])
    if begin + size > len(der):
        raise IndexError(begin + size)
    return der[0], der[begin : begin + size], der[begin + size :]


def _time(tag: int, text: bytes) -> float:
    """Years have two digits until 2049, and four later."""
    form = "%y%m%d%H%M%SZ" if tag == UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(text.decode(), form).replace(tzinfo=UTC).timestamp()
