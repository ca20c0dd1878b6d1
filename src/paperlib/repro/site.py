"""What Sphinx makes the site of: docs/, and a page for each figure, paper and module, written from records and notebooks."""

import html
import json
import re
import shutil
from pathlib import Path

from PIL import Image

from paperlib.repro import build, ledger

_ASKED = r"\[\[([\w/.-]+(?:#[\w.-]+)?)\]\]"  # in a page of docs/
# there, a link to a file, as a code host follows it, becomes one to the page made of that file
_PAGES = {
    r"\.\./notebooks/(\w+/[a-z0-9]+)_\w+\.ipynb": r"figures/\1.ipynb",
    r"\.\./src/paperlib/(\w+)\.py": r"reference/\1.md",
    r"\.\./src/paperlib\b": "reference/index.md",
    r"\.\./README\.md#gallery": "gallery.md",
    r"\.\./": "",
}
_HEAD = ("claim", "measured", "criterion", "status")


def write(target, root=build.ROOT):
    """Write ``target/source``, which Sphinx reads, and ``target/extra``, which goes into the site as it is.

    A figure has a page if it has a notebook and a record. Its notebook is the one that the last build at paper scale executed, if that is
    there and has the same code, else the one of the repository, with the outputs of its preview. In docs/, ``[[FIGURE#CLAIM]]`` becomes
    what was measured, ``[[claims]]`` the table of all and ``[[summary]]`` that of their statuses; a link to a file of the repository
    becomes one to its page.

    Parameters
    ----------
    target : path of a folder, emptied first
    root : path of the project

    Returns
    -------
    dict of str
        By figure id, whose outputs its page shows: "paper" or "preview".

    Raises
    ------
    ValueError
        A record that is none; a claim in docs/ that there is not.
    """
    target, root = Path(target), Path(root)
    source, extra = target / "source", target / "extra"
    shutil.rmtree(target, ignore_errors=True)
    notebooks = build.notebooks(root)
    records = {
        figure: record
        for figure, record in ledger.read_all(root / "figures").items()
        if figure in notebooks
    }
    about = dict(
        re.findall(r"^- \[(\w+)\] (.+)$", (root / "README.md").read_text(), re.M)
    ) | {"beyond": "What no paper shows."}
    times = (
        json.loads(times.read_text())
        if (times := root / "build" / "seconds-paper.json").exists()
        else {}
    )

    profiles, cards = {}, {paper: [] for paper in about}  # in the order of the README
    for figure, record in sorted(records.items(), key=_natural):
        notebook, profiles[figure] = _executed(figure, notebooks[figure], root)
        path = notebooks[figure].relative_to(root)
        _put(
            source / "figures" / f"{figure}.ipynb",
            _page(notebook, record, path, times.get(figure), profiles[figure]),
        )
        for file in [notebooks[figure], *(root / "figures").glob(f"{figure}.*")]:
            _put(extra / file.relative_to(root), file.read_bytes())
        with Image.open(root / "figures" / f"{figure}.png") as image:
            image.thumbnail((480, 480))
            image.save(extra / "figures" / f"{figure}.thumb.png")
        cards.setdefault(path.parts[1], []).append((figure, notebook, record))
    cards = {paper: made for paper, made in cards.items() if made}
    for paper, made in cards.items():
        toctree = _toctree(
            [
                f"{_short(notebook)} <{figure.split('/')[1]}>"
                for figure, notebook, _ in made
            ],
            ":hidden:",
        )
        _put(
            source / "figures" / paper / "index.md",
            f"# {paper}",
            about.get(paper, ""),
            _gallery(made, "../../"),
            toctree,
        )
    sections = [
        text
        for paper in cards
        for text in (
            f"({paper})=\n## {paper}",
            about.get(paper, ""),
            _gallery(cards[paper]),
        )
    ]
    _put(
        source / "gallery.md",
        "# Gallery",
        *sections,
        _toctree([f"figures/{paper}/index" for paper in cards], ":hidden:"),
    )
    for path in (root / "notebooks").glob("[!.]*.ipynb"):
        _put(
            source / "notebooks" / path.name,
            json.dumps(_tidy(json.loads(path.read_text()))),
        )
        _put(extra / "notebooks" / path.name, path.read_bytes())
    modules = sorted(path.stem for path in (root / "src" / "paperlib").glob("[!_]*.py"))
    for module in modules:
        _put(
            source / "reference" / f"{module}.md",
            f"# {module}\n\n```{{eval-rst}}\n.. automodule:: paperlib.{module}\n   :members:\n```",
        )
    _put(source / "reference" / "index.md", "# Reference", _toctree(modules))
    said = {"summary": ledger.summary(records), "claims": _claims(records)}
    for figure, record in records.items():
        for claim in record["claims"]:
            said[f"{figure}#{claim['name']}"] = (
                f'<a href="claims.html#{_anchor(record, claim)}">{ledger.measurement(claim)}</a>'
            )
    for path in [
        *(root / "docs").glob("*.md"),
        *(root / folder / "README.md" for folder in ("benchmarks", "data")),
    ]:
        if missing := set(re.findall(_ASKED, text := path.read_text())) - said.keys():
            raise ValueError(
                f"{path} must ask for claims that there are, got {', '.join(sorted(missing))}"
            )
        text = re.sub(_ASKED, lambda found: said[found[1]], text)
        in_docs = path.parent.name == "docs"
        for file, page in _PAGES.items() if in_docs else ():
            text = re.sub(rf"(?<=\]\(){file}", page, text)
        _put(source / path.relative_to(root / "docs" if in_docs else root), text)
    return profiles


def _put(path, *content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        content[0] if isinstance(content[0], bytes) else "\n\n".join(content).encode()
    )


def _natural(item):
    """So that figure 2 comes before figure 10, and figures before lemmas and sections."""
    paper, name = item[0].split("/")
    return (
        paper,
        not name.startswith("fig"),
        [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)],
    )


def _executed(figure, path, root):
    """A figure's notebook, and of which profile its outputs are."""
    run = root / "build" / "notebooks" / "paper" / f"{figure}.ipynb"
    same = run.exists() and [
        cell for cell in build.cells(run) if "injected-parameters" not in cell[0]
    ] == build.cells(path)
    return _tidy(
        json.loads((run if same else path).read_text())
    ), "paper" if same else "preview"


def _tidy(notebook):
    """Without what differs between machines or needs a kernel, and with an alternative text for every image."""
    for number, cell in enumerate(notebook["cells"]):
        tags = cell["metadata"].get("tags", [])
        cell |= {
            "metadata": {"tags": tags, "mystnb": {"image": {"alt": _title(notebook)}}},
            "id": f"cell-{number}",
        }
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
        if "injected-parameters" in tags:
            cell["source"] = re.sub(r"\noutput_dir = .*", "", "".join(cell["source"]))
    return notebook | {
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3"},
            "language_info": {"name": "python"},
        }
    }


def _title(notebook):
    return "".join(notebook["cells"][0]["source"]).splitlines()[0].lstrip("# ")


def _short(notebook):
    return re.sub(r" of \[\w+\]", "", _title(notebook))


def _shows(notebook):
    """Title and first paragraph, as the text of an image."""
    paragraphs = "".join(notebook["cells"][0]["source"]).split("\n\n")[1:]
    said = " ".join(next((p for p in paragraphs if not p.startswith("*")), "").split())
    return html.escape(f"{_title(notebook)}. {re.sub(r'[`*$]', '', said)}".strip())


def _page(notebook, record, path, seconds, profile):
    """The notebook, with the figure at paper scale, its claims and what they were made of before the code."""
    paper, name = record["figure"].split("/")
    first, *rest = notebook["cells"]
    links = {
        "All figures": f"../../gallery.html#{paper}",
        "notebook": f"../../{path.as_posix()}",
    }
    links |= {
        "SVG": f"{name}.svg",
        "arrays drawn": f"{name}.npz",
        "record": f"{name}.json",
    }
    links = " · ".join(
        f'<a href="{href}"{" download" * href.endswith(("ipynb", "npz"))}>{text}</a>'
        for text, href in links.items()
    )
    given = "".join(
        line
        for cell in rest
        if "parameters" in cell["metadata"]["tags"]
        for line in cell["source"]
    )
    meaning = dict(re.findall(r"^(\w+) = .*?  # (.*)$", given, re.M))
    sources = sorted(
        {claim["source"] for claim in record["claims"]} - {*record["data"]}
    )
    data = ", ".join(
        [
            *sources,
            *(
                f"`{name}` (SHA-256 `{checksum}`)"
                for name, checksum in record["data"].items()
            ),
        ]
    )
    versions = ", ".join(f"{key} {value}" for key, value in record["versions"].items())
    claims = [
        _row(*_claim(claim, f"../../claims.html#{_anchor(record, claim)}"))
        for claim in record["claims"]
    ]
    parameters = [
        _row(
            f"<code>{name}</code>",
            html.escape(str(value)),
            _text(meaning.get(name, "")),
        )
        for name, value in record["parameters"].items()
    ]
    text = [
        f"# {_title(notebook)}",
        f'<a href="{name}.svg"><img class="figure" src="{name}.png" alt="{_shows(notebook)}"></a>\n<p>{links}</p>',
        "".join(first["source"]).partition("\n")[2].strip(),
        "## Claims",
        _table(_HEAD, claims, "claims"),
        "## Run",
        _table(("parameter", "value", "meaning"), parameters),
        f"[Data](../../data/README.md): {data}. Built {f'in {seconds:g} seconds ' if seconds else ''}with {versions}.",
        "## Code",
        f"With the outputs of {'that run' if profile == 'paper' else 'a preview, which has fewer runs and other numbers than above'}.",
    ]
    return json.dumps(
        notebook
        | {
            "cells": [
                {
                    "cell_type": "markdown",
                    "metadata": {},
                    "source": "\n\n".join(text),
                    "id": "page",
                },
                *rest,
            ]
        }
    )


def _toctree(pages, *options):
    return "\n".join(["```{toctree}", *options, "", *pages, "```"])


def _gallery(cards, up=""):
    """A list of thumbnails with titles, each linked to its page."""
    items = []
    for figure, notebook, record in cards:
        page, held = (
            f"{up}figures/{figure}",
            sum(claim["status"] == "holds" for claim in record["claims"]),
        )
        image = f'<img src="{page}.thumb.png" alt="{_shows(notebook)}" loading="lazy">'
        title = f'<a href="{page}.html">{image}{html.escape(_short(notebook))}</a>'
        items.append(
            f"<li>{title}<br><small>{held} of {len(record['claims'])} claims hold</small></li>"
        )
    return "\n".join(['<ul class="gallery">', *items, "</ul>"])


def _text(text):
    return re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(text))


def _row(*cells, attributes=""):
    return f"<tr{attributes}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _table(head, rows, kind=""):
    head = "".join(f"<th>{cell}</th>" for cell in head)
    opening = f'<div class="table-wrapper"><table class="docutils {kind}"><thead><tr>{head}</tr></thead><tbody>'
    return "\n".join([opening, *rows, "</tbody></table></div>"])


def _anchor(record, claim):
    return f"{record['figure'].replace('/', '-')}-{claim['name']}"


def _claim(claim, href):
    """The cells of a claim, its name linked to another page."""
    says = f'{_text(claim["says"])} (<a href="{href}">{claim["name"]}</a>)<br><small>{_text(claim["where"])}</small>'
    measured = f"{ledger.measurement(claim)}<br><small>{_text(claim['source'])}</small>"
    status = f'<strong class="{claim["status"].replace(" ", "-")}">{claim["status"]}</strong>'
    return (
        says,
        measured,
        claim["criterion"],
        status + (f"<br>{_text(claim['reason'])}" if claim["reason"] else ""),
    )


def _claims(records):
    """All claims, one row each, which docs/_static/claims.js filters."""
    rows = []
    for figure, record in records.items():
        for claim in record["claims"]:
            by = "ours" if claim["says"].startswith("ours: ") else "the paper's"
            kinds = {"status": claim["status"], "paper": figure.split("/")[0], "by": by}
            attributes = f' id="{_anchor(record, claim)}"' + "".join(
                f' data-{kind}="{value}"' for kind, value in kinds.items()
            )
            rows.append(
                _row(
                    figure,
                    *_claim(claim, f"figures/{figure}.html"),
                    attributes=attributes,
                )
            )
    return _table(("figure", *_HEAD), rows, "all-claims")
