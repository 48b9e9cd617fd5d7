"""Encodings of text files: UTF-8 and UTF-16, or a guess of GB18030 (with GBK and GB2312) or Windows-1252; others are named.

No byte of a file says that it is GBK rather than Windows-1252, so a guess is reported with the file. Of 300 pieces of 20
characters, ``guess_encoding`` reads all Western ones and all but 2 of the Chinese ones (these it refuses), and from 200
characters on every one. charset-normalizer 3.5 misreads one in eight of the Western pieces if limited to the two encodings,
half of them without that limit.
"""

from __future__ import annotations

import codecs
import re

from rallebench.core.errors import UsageError

UTF8, GB18030, WESTERN = "utf-8", "gb18030", "cp1252"
LABELS = {
    UTF8: "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32": "UTF-32",
    GB18030: "GB18030 (GBK)",
    WESTERN: "Windows-1252",
}
"""Encoding → its name in sentences."""
NAMEABLE: tuple[str, ...] = (UTF8, "utf-16", GB18030, "big5", "shift_jis", "euc_jp", "euc_kr")
NAMEABLE += (WESTERN, "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r")
"""Encodings that the page offers."""

_MARKS = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
MOST_FOREIGN, MOST_ACCENTS = 0.3, 0.6
"""Western text: maximum share, of the bytes beyond ASCII, of those in words without an ASCII letter; and of bytes beyond ASCII
in the words that have one."""
FREQUENT = frozenset(
    "的一是不了在有人我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方"
    "多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实，。、；：？！（）《》“”‘’—…·\u3000"
)
"""The most frequent Chinese characters, nearly half of any text, and punctuation."""
WINDOW = 2**20
"""Bytes behind the first one beyond ASCII that decide on an encoding."""
SAMPLE = 2**16
"""Bytes of lines beyond ASCII in them that are examined closely."""
MOST_CONTROLS = 0.01
"""Maximum share of control characters in text."""
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_BINARY = re.compile(rb"[^\n\0]*\0[^\n]*")
_RUN = re.compile(rb"[\x80-\xff]+")
_FOREIGN = re.compile(rb"(?<![A-Za-z\x80-\xff])[\x80-\xff]{2,}(?![A-Za-z\x80-\xff])")
_WORD = re.compile(rb"[A-Za-z\x80-\xff]+")
_BEYOND, _DAMAGED = re.compile("[^\0-\x7f]"), re.compile("[\udc80-\udcff]")
_FIRST = re.compile(rb"[\0\x80-\xff]")
_FEW = 8
"""Characters below which a text may lack frequent ones."""
_BLOCKS = (
    ("\u2000", "\u2070"),
    ("\u3000", "\u3100"),
    ("\u4e00", "\ua000"),
    ("\uac00", "\ud7a4"),
    ("\uff00", "\ufff0"),
)
"""Punctuation, kana, Chinese characters, Hangul, full-width forms."""
WIDE = ("utf-16-le", "utf-16-be")


def mark_encoding(data: bytes) -> str:
    """Return the encoding that the byte order mark at the beginning names; '' without one."""
    return next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "")


def sample_range(data: bytes) -> tuple[int, int]:
    """Return the range of the bytes that decide on the encoding of a text: up to WINDOW behind the first one beyond ASCII."""
    first = _FIRST.search(data)
    start = first.start() if first else 0
    return (start if start >= SAMPLE else 0), start + WINDOW


def guess_encoding(data: bytes, ended: bool = True) -> str:
    """Return the probable encoding of text without a byte order mark; '' if no known one fits.

    ``ended``: False if ``data`` may end within a character. Text with damaged characters counts as UTF-8 if most are sound.

    >>> [guess_encoding("Überall Café".encode(name)) for name in ("utf-8", "cp1252", "utf-16-le")]
    ['utf-8', 'cp1252', 'utf-16-le']
    >>> guess_encoding("月亮很大".encode("gbk")), guess_encoding("день и ночь".encode("koi8-r"))
    ('gb18030', '')
    """
    if b"\0" in data:
        return _guess_wide(data, ended) or guess_encoding(_BINARY.sub(b"", data), ended)
    if _is_utf8(data, ended):
        return UTF8
    if len(_CONTROL.findall(data)) > MOST_CONTROLS * len(data):
        return _guess_wide(data, ended)
    if len(data) > SAMPLE:
        lines = b"\n".join(line for line in data.splitlines() if not line.isascii())
        data, ended = lines[:SAMPLE], False
    high = sum(map(len, _RUN.findall(data)))
    single = sum(len(run) == 1 for run in _RUN.findall(data))
    if 2 * single < high and _is_chinese(data, ended):
        return GB18030
    foreign = sum(map(len, _FOREIGN.findall(data)))
    words = b"".join(word for word in _WORD.findall(data) if not word.isascii() and len(word) > 1)
    accents = sum(map(len, _RUN.findall(words)))
    western = foreign <= MOST_FOREIGN * high and accents <= MOST_ACCENTS * len(words)
    return WESTERN if western and _decodes(data, WESTERN) else ""


def _is_utf8(data: bytes, ended: bool) -> bool:
    text = codecs.getincrementaldecoder(UTF8)("surrogateescape").decode(data, final=ended)
    damaged, beyond = len(_DAMAGED.findall(text)), len(_BEYOND.findall(text))
    return damaged == 0 or 2 * damaged < beyond


def _guess_wide(data: bytes, ended: bool) -> str:
    """UTF-16 without a mark: the byte order that gives more usual characters, if nearly all are letters or marks."""
    if ended and len(data) % 2:
        return ""
    data = data[: min(len(data) // 2 * 2, SAMPLE)]
    texts = {name: data.decode(name, "replace") for name in WIDE}
    usual = {name: sum(map(_is_usual, text)) for name, text in texts.items()}
    best = max(WIDE, key=usual.__getitem__)
    strange = sum(map(_is_strange, texts[best]))
    return best if 10 * usual[best] >= len(texts[best]) > 20 * strange else ""


def _is_usual(character: str) -> bool:
    return "\x20" <= character < "\x7f" or character in "\t\r\n" or character in FREQUENT


def _is_strange(character: str) -> bool:
    """Return whether a character is a control, or of a rare script."""
    if character < "\u0700":
        return character < "\x20" and character not in "\t\n\r"
    return not any(first <= character < last for first, last in _BLOCKS)


def _is_chinese(data: bytes, ended: bool) -> bool:
    """Return whether GB18030 gives common characters; Korean and Japanese encodings give such without the frequent ones."""
    try:
        text = codecs.getincrementaldecoder(GB18030)().decode(data, final=ended)
    except UnicodeDecodeError:
        return False
    beyond = [character for character in text if character > "\x7f"]
    common = sum(map(_is_common, beyond))
    frequent = sum(character in FREQUENT for character in beyond)
    return 5 * common >= 4 * len(beyond) and (len(beyond) < _FEW or 10 * frequent >= len(beyond))


def _is_common(character: str) -> bool:
    """Return whether a character is in GB2312's first level, or a mark."""
    if not ("\u4e00" <= character < "\ua000"):
        return (
            "\u2000" <= character < "\u2070"
            or "\u3000" <= character < "\u3020"
            or character > "\uff00"
        )
    pair = character.encode("gb2312", "ignore")
    return b"\xb0" <= pair[:1] <= b"\xd7"


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def check_encoding(name: str) -> str:
    """Return Python's name of a text encoding; '' for ''. Raises UsageError for an unknown one.

    >>> check_encoding("GBK"), check_encoding("Windows-1252")
    ('gbk', 'cp1252')
    """
    if not name.strip():
        return ""
    try:
        codec = codecs.lookup(name.strip())
        codecs.getincrementaldecoder(codec.name)("strict").decode(b"a", final=False)
        known = codec.name not in _NO_FILES and getattr(codec, "_is_text_encoding", True)
    except (LookupError, ValueError, TypeError, AttributeError):
        known = False
    if not known:
        raise UsageError(
            f"There is no text encoding {name!r}; name one such as {', '.join(NAMEABLE[:4])} or {WESTERN}."
        )
    return codec.name


_NO_FILES = frozenset(
    ["idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "mbcs", "oem"]
)


def label(encoding: str) -> str:
    """Return an encoding's name for a sentence."""
    return LABELS.get(encoding, encoding.upper())
