"""Authorities as Java reads them, from a file of certificates: `python truststore.py FROM TO`."""

import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import NoEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore

source, target = map(Path, sys.argv[1:])
trusted = x509.load_pem_x509_certificates(source.read_bytes())
named = [PKCS12Certificate(each, str(number).encode()) for number, each in enumerate(trusted)]
target.write_bytes(serialize_java_truststore(named, NoEncryption()))
print(f"{len(named)} authorities")
