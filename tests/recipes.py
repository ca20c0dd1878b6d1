"""The blocks of docs/extend.md: which file each is for, and how it gets there."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "extend.md"
BLOCK = re.compile(r"^([^\n]*)\n+```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def sections():
    """Blocks of every section, by its heading: path or None, kind, text."""
    parts = re.split(r"^## (.*)\n", PAGE.read_text(encoding="utf-8"), flags=re.M)
    return {
        heading: [
            (_path(line), kind, block) for line, kind, block in BLOCK.findall(text)
        ]
        for heading, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def _path(line):
    """The file that the line above a block names, if that ends with a colon."""
    if not line.endswith(":"):
        return None
    names = re.findall(r"`([\w./-]+/[\w.-]+\.\w+)`", line)
    return names[-1] if names else None


def put(root, path, kind, text):
    """Make a file of a block, or add the block to the file that is there.

    Nothing changes where the recipe has been followed already.
    """
    path = Path(root, path)
    if kind == "diff":
        path.write_text(_with_lines(path.read_text(), text))
    elif kind == "yaml" and text not in path.read_text():
        path.write_text(path.read_text() + text)
    elif path.suffix == ".ipynb":
        _write_notebook(path, text)
    elif kind == "python":
        path.write_text(text)


def _with_lines(text, diff):
    """A text with the lines of a block that begin with +."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        new = [line[1:] for line in lines if line.startswith("+")]
        if all(line in text for line in new):
            continue
        before = "".join(line[1:] for line in lines if not line.startswith("+"))
        assert text.count(before) == 1, f"not there once: {before}"
        text = text.replace(before, "".join(line[1:] for line in lines))
    return text


def _write_notebook(path, text):
    """Make a notebook of cells that begin with lines such as "# %% [markdown]"."""
    import nbformat

    notebook = nbformat.v4.new_notebook()
    for head, body in re.findall(r"^# %%(.*)\n((?:(?!# %%).*\n)*)", text, re.M):
        body = body.strip("\n")
        if "[markdown]" in head:
            prose = re.sub(r"^# ?", "", body, flags=re.M)
            cell = nbformat.v4.new_markdown_cell(prose)
        else:
            cell = nbformat.v4.new_code_cell(body)
        if tags := re.findall(r'"([\w-]+)"', head):
            cell.metadata["tags"] = tags
        notebook.cells.append(cell)
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
    }
    nbformat.write(notebook, path)
