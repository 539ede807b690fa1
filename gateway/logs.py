"""What the gateway writes of itself: a line for an event, as text or as JSON.

Fields come as ``extra={"fields": {...}}`` of the standard library's `logging`. No body,
header or key is ever among them; ids of clients are, which were found printable.
"""

import json
import logging
import sys
import time
from typing import Any, TextIO

NAME = "justitia"


class Text(logging.Formatter):
    """A line for people, fields behind it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = f"{_time(record)} {record.levelname.lower()} {record.getMessage()}"
        told = " ".join(f"{k}={_shown(v)}" for k, v in _fields(record).items())
        if record.exc_info:
            told = f"{told}\n{self.formatException(record.exc_info)}"
        return f"{line} {told}".rstrip()


class Json(logging.Formatter):
    """An object a line, for programs."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        told = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told)


def set_up(form: str, stream: TextIO | None = None) -> logging.Handler:
    """Let our logger, and no other, write in a form (``text`` or ``json``)."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Json() if form == "json" else Text())
    logger = logging.getLogger(NAME)
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    return handler


def _time(record: logging.LogRecord) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{whole}.{int(record.msecs):03}Z"


def _shown(value: object) -> str:
    """Return a value as JSON has it; whole numbers, as most are, the short way."""
    return str(value) if type(value) is int else json.dumps(value)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, dict) else {}
