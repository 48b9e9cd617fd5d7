"""Header of a GGUF file, read by ``gguf``'s reader but without the vocabulary, which it would split token by token."""

from __future__ import annotations

import struct
from typing import Any

from gguf import GGUFReader, GGUFValueType

MANY = 1024
"""Longest array that is read: a vocabulary of 50,000 tokens takes the reader three seconds, and no other array is that
long."""


class Header(GGUFReader):  # type: ignore[misc]
    """Fields and tensors of a file; only the length of a long array is known."""

    def count(self, name: str) -> int:
        """Return the length of an array; 0 if absent."""
        field = self.fields.get(name)
        return int(field.parts[4][0]) if field is not None else 0

    def value(self, name: str) -> Any:
        """Return a field as a Python value (the largest of a list of numbers); None if it is absent or too long."""
        field = self.fields.get(name)
        if field is None or not field.data:
            return None
        value = field.contents()
        return max(value) if isinstance(value, list) else value

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
        if raw_type != GGUFValueType.ARRAY:
            return super()._get_field_parts(orig_offs, raw_type)
        kind, entries = self._get(orig_offs, "<u4"), self._get(orig_offs + 4, "<u8")
        count = int(entries[0])
        if count <= MANY:
            return super()._get_field_parts(orig_offs, raw_type)
        number = self.gguf_scalar_to_np.get(GGUFValueType(kind[0]))
        start = orig_offs + 12
        end = (
            self._end_of_texts(start, count) if number is None else start + count * number().nbytes
        )
        if end > len(self.data):
            raise ValueError("an array ends beyond the file")
        return end - orig_offs, [kind, entries], [], [GGUFValueType.ARRAY]

    def _end_of_texts(self, offset: int, count: int) -> int:
        for _ in range(count):
            (length,) = struct.unpack_from("<Q", self.data, offset)
            offset += 8 + length
        return offset
