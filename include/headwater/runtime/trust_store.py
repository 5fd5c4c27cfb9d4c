"""Lets the Java from PyPI trust the certificate authorities that the machine trusts.

A system Java does so already. The packaged one knows the public authorities only, and fails behind a proxy
whose authority was added to the machine, although everything else there works.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")


def trust_options(store: Path) -> list[str]:
    """Return arguments for Java that make it trust what the machine trusts; none if that is not known.

    Args:
        store: the file to write the certificates to, in a form that Java reads.

    """
    bundle = _bundle()
    if bundle is None:
        return []
    from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12

    certificates = [
        pkcs12.PKCS12Certificate(certificate, f"authority {number}".encode())
        for number, certificate in enumerate(_certificates(bundle))
    ]
    store.write_bytes(pkcs12.serialize_java_truststore(certificates, NoEncryption()))
    return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=PKCS12"]


def _bundle() -> Path | None:
    """Return the file of the machine's authorities; ``SSL_CERT_FILE`` names another one."""
    named = (os.environ.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile, *_BUNDLES)
    return next((Path(name) for name in named if name and Path(name).is_file()), None)


def _certificates(bundle: Path) -> list[Certificate]:
    from cryptography.x509 import load_pem_x509_certificate

    end = b"-----END CERTIFICATE-----"
    certificates = []
    # Old authorities may break rules that are checked today: a warning is not for users, and the others still count.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in bundle.read_bytes().split(end)[:-1]:
            with contextlib.suppress(ValueError):
                certificates.append(load_pem_x509_certificate(text[text.index(b"-----BEGIN") :] + end))
    return certificates
