"""An authority of a test's own, and certificates that it issues, as PEM files."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Issued:
    """Files of an authority's certificate, and of a certificate of 127.0.0.1 that it issued, with its key."""

    authority: Path
    certificate: Path
    key: Path

    def settings(self) -> dict[str, object]:
        """Settings of a run that shows this certificate to the scheduler."""
        named = {"ca": self.authority, "cert": self.certificate, "key": self.key}
        return {f"scheduler_tls_{name}": path for name, path in named.items()}

    def options(self) -> tuple[str, ...]:
        """Options of Dask's commands for a scheduler or worker with this certificate."""
        files = {"ca-file": self.authority, "cert": self.certificate, "key": self.key}
        return ("--protocol", "tls", *(word for name, path in files.items() for word in (f"--tls-{name}", str(path))))


def issue(folder: Path) -> Issued:
    """Make an authority and a certificate in ``folder``; both are good for an hour."""
    folder.mkdir()
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer, subject = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("authority of a test", "127.0.0.1")
    )
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    authority = _signed(issuer, issuer, authority_key, authority_key, x509.BasicConstraints(ca=True, path_length=0))
    made = Issued(folder / "authority.pem", folder / "certificate.pem", folder / "key.pem")
    made.authority.write_bytes(authority)
    made.certificate.write_bytes(_signed(subject, issuer, key, authority_key, address))
    made.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return made


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    extension: x509.ExtensionType,
) -> bytes:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
    )
    return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
