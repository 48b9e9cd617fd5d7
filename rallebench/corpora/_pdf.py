"""Text layer of PDFs."""

from __future__ import annotations

from pathlib import Path

from rallebench.corpora._documents import CHARACTERS, Document, UnreadableError


def read_pdf(path: Path) -> list[Document]:
    """Return the text layer, with a blank line between pages, and the title in the PDF's metadata.

    Raises UnreadableError for a protected file and one without text; for a damaged file, almost anything.
    """
    import pypdf

    with pypdf.PdfReader(path) as reader:
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError("is protected by a password; save it without one.")
        pages, length = [], 0
        for page in reader.pages:
            pages.append(page.extract_text().strip())
            length += len(pages[-1])
            if length > CHARACTERS:
                break
        title = str((reader.metadata and reader.metadata.title) or "").strip()
    text = "\n\n".join(page for page in pages if page)
    if not text:
        raise UnreadableError("contains only pictures, no text; run OCR on it first.")
    return [Document(text, title)]
