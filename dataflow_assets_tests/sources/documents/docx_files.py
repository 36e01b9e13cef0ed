"""Small DOCX files, written by hand with the parts that Word writes."""

import io
import zipfile

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
STYLES = (
    f"<w:styles {_W}>"
    '<w:style w:styleId="1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:styleId="a3"><w:name w:val="heading 2"/></w:style>'
    "</w:styles>"
)
CORE = (
    '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>合同 A</dc:title></cp:coreProperties>'
)


def docx_file(
    body: str, prolog: str = "", *, packed: int = zipfile.ZIP_DEFLATED, **parts: str | bytes
) -> bytes:
    """A DOCX with this XML inside its body; `parts` replace document, styles and core."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", packed) as archive:
        document = f"{prolog}<w:document {_W}><w:body>{body}</w:body></w:document>"
        archive.writestr("word/document.xml", parts.get("document", document))
        archive.writestr("word/styles.xml", parts.get("styles", STYLES))
        archive.writestr("docProps/core.xml", parts.get("core", CORE))
    return held.getvalue()


def paragraph(text: str, style: str = "") -> str:
    """A paragraph of one run."""
    mark = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{mark}<w:r><w:t>{text}</w:t></w:r></w:p>"
