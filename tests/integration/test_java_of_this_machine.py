"""Programs of Java's own that an installation runs: what they take is what we give."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headwater.runtime.conditions import JarsUnavailable
from headwater.runtime.ivy import Coordinate, retrieve
from headwater.runtime.java import java_environment
from headwater.runtime.trust_store import trust_options


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle with two good authorities, and something that is none between them."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding

    pems = []
    for name in ("first", "second"):
        key = ec.generate_private_key(ec.SECP256R1())
        subject_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        builder = x509.CertificateBuilder(
            subject_name, subject_name, key.public_key(), x509.random_serial_number()
        )
        now = datetime.now(UTC)
        builder = builder.not_valid_before(now).not_valid_after(now + timedelta(days=1))
        pems.append(builder.sign(key, SHA256()).public_bytes(Encoding.PEM))
    broken = b"-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n"
    file = tmp_path / "bundle.pem"
    file.write_bytes(broken.join(pems))
    return file


def test_java_reads_the_authorities(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Java's own tool lists the two good ones; the broken one does no harm."""
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    monkeypatch.setenv("HEADWATER_JAVA", "pypi")
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path))
    store = tmp_path / "store.p12"
    assert trust_options(store)[0] == f"-Djavax.net.ssl.trustStore={store}"
    keytool = Path(java_environment()["REAL_JAVA_HOME"]) / "bin" / "keytool"
    command = [str(keytool), "-list", "-keystore", str(store), "-storetype", "PKCS12", "-storepass", ""]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert answer.stdout.count("trustedCertEntry") == 2, answer.stdout + answer.stderr


def test_an_unreachable_repository_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Ivy's own settings file is passed on, and what it can't find is named with a remedy."""
    settings = tmp_path / "settings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="here"/><resolvers><filesystem name="here">'
        f'<artifact pattern="{tmp_path}/nothing/[artifact].[ext]"/></filesystem></resolvers></ivysettings>'
    )
    monkeypatch.setenv("HEADWATER_IVY_SETTINGS", str(settings))
    with pytest.raises(JarsUnavailable) as caught:
        retrieve([Coordinate("org.example", "one", "1.0")], tmp_path / "into", tmp_path / "ivy")
    assert "org.example#one;1.0" in caught.value.what
    assert str(settings) in caught.value.where
    assert "HEADWATER_IVY_SETTINGS" in caught.value.remedy
