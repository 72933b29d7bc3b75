"""Certificate authorities and certificates for tests, with keys that are quick to make."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ordercast.runtime.process.settings import PEER_URI


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as files hold them."""

    cert_pem: bytes
    key_pem: bytes

    def write(self, cert: Path, key: Path) -> None:
        cert.write_bytes(self.cert_pem)
        key.write_bytes(self.key_pem)


class Authority:
    """A CA that signs certificates for both ends of a connection."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._cert = builder.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())

    @property
    def pem(self) -> bytes:
        return self._cert.public_bytes(serialization.Encoding.PEM)

    def issue_peer(self, common_name: str, dns: Sequence[str] = ()) -> Pair:
        """A certificate of a process, with the mark that tells it from a client's."""
        return self.issue(common_name, dns, (PEER_URI,))

    def issue(self, common_name: str, dns: Sequence[str] = (), uris: Sequence[str] = ()) -> Pair:
        """A certificate with this common name, and with these names and URIs as alternative names."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_named(common_name), self._name, key.public_key())
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        alternatives = [*map(x509.DNSName, dns), *map(x509.UniformResourceIdentifier, uris)]
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        cert = builder.sign(self._key, hashes.SHA256())
        return Pair(
            cert_pem=cert.public_bytes(serialization.Encoding.PEM),
            key_pem=key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
        )


def _named(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)] if common_name else [])


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        # An hour back: the clocks of two machines differ.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
