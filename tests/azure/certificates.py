"""Certificates for an emulator that speaks TLS, and what makes its clients trust them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

_PASSWORD = "changeit"


@dataclass(frozen=True)
class Certificates:
    """In one folder: who signs (``ca.pem``), the server's own (``server.pem``, ``server.key``), and Java's store of those that are trusted."""

    folder: Path

    @property
    def authority(self) -> Path:
        """Whom clients have to trust."""
        return self.folder / "ca.pem"

    @property
    def java_options(self) -> str:
        """What makes a JVM trust it."""
        store = self.folder / "trusted.p12"
        return f"-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStorePassword={_PASSWORD}"


def certificates(folder: Path) -> Certificates:
    """Make them for 127.0.0.1."""
    made = Certificates(folder)
    signer, authority = _signed("authority of the tests", None, None)
    key, own = _signed("127.0.0.1", authority, signer)
    made.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    (folder / "server.pem").write_bytes(own.public_bytes(serialization.Encoding.PEM))
    kind, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "server.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, kind, plain))
    command = ["keytool", "-importcert", "-noprompt", "-alias", "tests", "-storetype", "PKCS12"]
    command += ["-file", str(made.authority), "-storepass", _PASSWORD]
    subprocess.run([*command, "-keystore", str(folder / "trusted.p12")], check=True, capture_output=True)
    return made


def _signed(
    name: str, authority: x509.Certificate | None, signer: rsa.RSAPrivateKey | None
) -> tuple[rsa.RSAPrivateKey, x509.Certificate]:
    key = rsa.generate_private_key(65537, 2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).public_key(key.public_key())
    builder = builder.issuer_name(authority.subject if authority is not None else subject)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(datetime.now(UTC) - timedelta(days=1))
    builder = builder.not_valid_after(datetime.now(UTC) + timedelta(days=30))
    builder = builder.add_extension(
        x509.BasicConstraints(ca=authority is None, path_length=None), critical=True
    )
    if authority is not None:
        own = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        builder = builder.add_extension(own, critical=False)
    return key, builder.sign(signer or key, hashes.SHA256())
