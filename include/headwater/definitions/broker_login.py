"""``brokers`` in ``pipeline.yml``: how to log in to a Kafka broker when its lag is measured, without a secret in the file."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"


class BrokerLogin(BaseModel):
    """A login at one broker. Secrets are named by the environment variables that hold them.

    ``ca_file``: the certificates to trust, in PEM form; the system's where it is absent.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    protocol: Literal["SSL", "SASL_SSL", "SASL_PLAINTEXT"]
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    username: str | None = None
    password_env: str | None = Field(default=None, pattern=_VARIABLE)
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password_env: str | None = Field(default=None, pattern=_VARIABLE)

    @model_validator(mode="after")
    def _complete(self) -> BrokerLogin:
        named = self.username is not None and self.password_env is not None
        if self.protocol != "SSL" and not named:
            raise ValueError(f"{self.protocol} needs username and password_env")
        if self.protocol == "SSL" and (self.username or self.password_env):
            raise ValueError("SSL has no username and password; say SASL_SSL")
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together")
        return self
