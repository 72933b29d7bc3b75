"""How long certificates are good, as it is read from their files: against a library that knows all of X.509."""

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ordercast.runtime.transport.certificates import validity
from tests.unit.certificates import Authority

BEGINS = datetime.datetime(2026, 3, 1, 12, 30, 15, tzinfo=datetime.UTC)


def certificate(begins: datetime.datetime, ends: datetime.datetime, *, names: int = 1) -> bytes:
    """Signed by itself; with many names its parts have long lengths."""
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "u" * 60) for _ in range(names)]
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "n1"), *parts])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(begins).not_valid_after(ends)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize("days", [1, 90, 365 * 40])
@pytest.mark.parametrize("names", [0, 1, 5, 2000])
def test_a_certificate_s_time_is_read_as_it_was_written(days: int, names: int):
    """Beyond 2049 years are written otherwise."""
    ends = BEGINS + datetime.timedelta(days=days)
    found = validity(certificate(BEGINS, ends, names=names))
    assert (found.begins_s, found.ends_s) == (BEGINS.timestamp(), ends.timestamp())


def test_the_first_certificate_of_a_chain_counts():
    first = certificate(BEGINS, BEGINS + datetime.timedelta(days=3))
    chain = first + Authority("ca").pem
    assert validity(chain) == validity(first)


@pytest.mark.parametrize("text", ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"])
def test_what_is_no_certificate_is_refused(text: str):
    with pytest.raises(ValueError, match="certificate"):
        validity(text.encode())


def test_a_certificate_that_is_cut_off_anywhere_is_refused_or_read():
    """Nothing but ValueError comes of bytes that are missing."""
    whole = certificate(BEGINS, BEGINS + datetime.timedelta(days=3))
    lines = whole.splitlines()
    for kept in range(1, len(lines) - 1):
        text = b"\n".join([*lines[:kept], lines[-1]])
        try:
            assert validity(text) == validity(whole)
        except ValueError:
            continue
