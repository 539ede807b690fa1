"""Token ids of a text for a DistilBERT: by a tokenizer's file, or by hashing words."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import Protocol
from zlib import crc32

from justitia.predictors.errors import ModelError

PAD, BEGIN, END = 0, 1, 2
_FIRST = 5
"""The first id of a word; those below are kept for marks."""
_WORD = re.compile(r"\w+|[^\w\s]")
_CHARACTERS_A_TOKEN = 32
"""Of a long text only so many characters for each token that is kept are looked at."""
FILE = "tokenizer.json"


class Tokens(Protocol):
    """Gives the ids of a text."""

    pad: int

    def ids(self, text: str, most: int) -> list[int]:
        """Return at most `most` ids, the marks of begin and end among them."""


class HashedWords:
    """Ids of words by a checksum, so that there is no vocabulary to learn or to ship.

    Two words have one id now and then. Marks of punctuation are words; capitals are
    not told from small letters.

    Parameters
    ----------
    vocabulary
        How many ids there are.
    """

    pad = PAD

    def __init__(self, vocabulary: int) -> None:
        self._words = vocabulary - _FIRST

    def ids(self, text: str, most: int) -> list[int]:
        """Return the ids of the first words. O(most), however long the text is."""
        head = text[: most * _CHARACTERS_A_TOKEN].lower()
        words = islice(_WORD.finditer(head), max(0, most - 2))
        found = [_FIRST + crc32(word[0].encode()) % self._words for word in words]
        return [BEGIN, *found, END]


class FromFile:
    """Ids as a file of the library ``tokenizers`` says, which is JSON.

    Parameters
    ----------
    content
        Of the file.
    source
        What a message calls it.

    Raises
    ------
    ModelError
        If it is none.
    """

    def __init__(self, content: bytes, source: object) -> None:
        from tokenizers import Tokenizer  # noqa: PLC0415 - of the extra

        self.content = content
        try:
            self._tokenizer = Tokenizer.from_str(content.decode())
        except Exception as error:  # it raises nothing more special
            raise ModelError(f"{source}: no tokenizer: {error}") from None
        self._tokenizer.no_padding()
        pad = self._tokenizer.token_to_id("[PAD]")
        self.pad = 0 if pad is None else pad
        ids = self._tokenizer.get_vocab(with_added_tokens=True).values()
        self.size = max(ids, default=0) + 1
        self._most = self.size

    @classmethod
    def of(cls, folder: Path) -> FromFile:
        """Read `FILE` in a folder.

        Raises
        ------
        ModelError
            If it cannot be read, or is no tokenizer.
        """
        file = folder / FILE
        try:
            content = file.read_bytes()
        except OSError as error:
            raise ModelError(f"{file}: no tokenizer: {error.strerror}") from None
        return cls(content, file)

    def limit(self, most: int, source: object) -> None:
        """Let no id be beyond what a model of `most` ids knows.

        Raises
        ------
        ModelError
            If the vocabulary has more.
        """
        if self.size > most:
            raise ModelError(f"{source}: has {self.size:,} ids, the model {most:,}")
        self._most = most

    def ids(self, text: str, most: int) -> list[int]:
        """Return the ids of the text's beginning, at least one."""
        self._tokenizer.enable_truncation(most)
        head = text[: most * _CHARACTERS_A_TOKEN]
        found: list[int] = self._tokenizer.encode(head).ids
        # A file may give marks any id, whatever its vocabulary is.
        return [one if one < self._most else self.pad for one in found] or [self.pad]
