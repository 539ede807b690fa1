"""Who a request is from: its API key says so, and nothing else."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from hmac import compare_digest

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
    """

    def __init__(self, settings: Sequence[TenantSettings]) -> None:
        self._digests = [
            (_digest(key.get_secret_value().encode()), tenant.name)
            for tenant in settings
            for key in tenant.keys
        ]
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
        given = [value for name, value in headers if name == b"authorization"]
        found: str | None = None
        if len(given) == 1 and given[0][: len(_BEARER)].lower() == _BEARER:
            digest = _digest(given[0][len(_BEARER) :].strip())
            for known, name in self._digests:
                if compare_digest(known, digest):
                    found = name
        if found is None:
            raise GatewayError(
                401,
                "invalid_api_key",
                "a key of this gateway must be sent as Authorization: Bearer KEY",
            )
        return found


def _digest(key: bytes) -> bytes:
    return sha256(key).digest()
