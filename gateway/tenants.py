"""Who a request is from: its API key says so, and nothing else."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from hmac import compare_digest

from pydantic import SecretStr

from justitia.gateway.dispatcher import Caps
from justitia.gateway.errors import GatewayError
from justitia.gateway.settings import OPEN_TENANT, TenantSettings

_BEARER = b"bearer "


class Tenants:
    """The tenants of a gateway, told apart by their keys.

    A key is compared by its digest, with all there are, in constant time: how long that
    takes says nothing of how near a guess was. Keys themselves are not kept.

    Parameters
    ----------
    settings
        None: everybody is one tenant, and no key is asked for.
    operator
        The key of who may see how it is with all of them; it sends no requests.
    """

    def __init__(
        self, settings: Sequence[TenantSettings], operator: SecretStr | None = None
    ) -> None:
        self._digests = [
            (_digest(key.get_secret_value().encode()), tenant.name)
            for tenant in settings
            for key in tenant.keys
        ]
        self._operator = (
            None if operator is None else _digest(operator.get_secret_value().encode())
        )
        self.several = bool(settings)
        self.keyed = self.several or operator is not None
        self.names = tuple(t.name for t in settings) or (OPEN_TENANT,)
        self.weights = {tenant.name: tenant.weight for tenant in settings}
        self.caps = {
            tenant.name: Caps(tenant.most_agents, tenant.most_waiting)
            for tenant in settings
        }

    def of(self, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Return whose request it is.

        Raises
        ------
        GatewayError
            401, if there are keys and this is none of them.
        """
        if not self._digests:
            return OPEN_TENANT
        found = self._found(_given(headers))
        if found is None:
            raise _refused()
        return found

    def viewer(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """Return the tenant that looks at how it is; None for who may see all.

        Raises
        ------
        GatewayError
            401, if there are keys and this is none of them.
        """
        if not self.keyed:
            return None
        digest = _given(headers)
        if (
            self._operator is not None
            and digest is not None
            and compare_digest(self._operator, digest)
        ):
            return None
        found = self._found(digest)
        if found is None:
            raise _refused()
        return found

    def _found(self, digest: bytes | None) -> str | None:
        found: str | None = None
        for known, name in self._digests if digest is not None else ():
            if compare_digest(known, digest or b""):
                found = name
        return found


def _given(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """Return the digest of the key that was sent, None without one, or with two."""
    given = [value for name, value in headers if name == b"authorization"]
    if len(given) == 1 and given[0][: len(_BEARER)].lower() == _BEARER:
        return _digest(given[0][len(_BEARER) :].strip())
    return None


def _refused() -> GatewayError:
    return GatewayError(
        401,
        "invalid_api_key",
        "a key of this gateway must be sent as Authorization: Bearer KEY",
    )


def _digest(key: bytes) -> bytes:
    return sha256(key).digest()
