"""Tokens of code of each package: without comments, docstrings and annotations.

Run it in the project's root. `-v` prints every file; `--caps paperlib paperfigs`
exits 1 where one of these is above its cap. The count is the same with every Python
from 3.11 on.
"""

import ast
import io
import sys
import tokenize
from pathlib import Path

# So that no package grows again. Of recrawl, what has been reached is below 65,000:
# lower its cap with each thing that leaves.
CAPS = {"paperlib": 16_000, "paperfigs": 9_000, "recrawl": 61_000}
SKIP = {
    tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER, tokenize.COMMENT, tokenize.ENCODING,
}  # fmt: skip
TEMPLATES = {".sql", ".jinja", ".js", ".css", ".html"}


class Bare(ast.NodeTransformer):
    """The code without docstrings and annotations; an f-string is one string."""

    def generic_visit(self, node):
        super().generic_visit(node)
        if hasattr(node, "returns"):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [x for x in body if not is_string(x)] or [ast.Pass()]
        return node

    def visit_JoinedStr(self, node):
        return ast.Constant("f")

    def visit_AnnAssign(self, node):
        node.annotation = ast.Constant("t")
        return super().generic_visit(node)


def is_string(node):
    """Whether a statement is a string and nothing else."""
    value = getattr(node, "value", None)
    return isinstance(node, ast.Expr) and isinstance(getattr(value, "value", None), str)


def tokens(path):
    """Number of tokens of a file."""
    tree = Bare().visit(ast.parse(path.read_text()))
    code = ast.unparse(ast.fix_missing_locations(tree))
    read = tokenize.generate_tokens(io.StringIO(code + "\n").readline)
    return sum(token.type not in SKIP for token in read)


if __name__ == "__main__":
    above = []
    for package in sorted(Path("src").iterdir()):
        if not (package / "__init__.py").exists():
            continue
        files = sorted(package.rglob("*.py"))
        size = {path: tokens(path) for path in files}
        others = [p for p in package.rglob("*") if p.suffix in TEMPLATES]
        lines, other = (
            sum(len(path.read_text().splitlines()) for path in paths)
            for paths in (files, others)
        )
        total, cap = sum(size.values()), CAPS.get(package.name)
        print(
            f"{package.name:10s}{len(files):5d} files{lines:8,d} lines"
            f"{total:9,d} tokens{other:7,d} lines of SQL and templates"
            + (f"   cap {cap:,d}" if cap else "")
        )
        if "-v" in sys.argv:
            for path, n in size.items():
                print(f"{n:12,d}  {path.relative_to('src')}")
        if cap and total > cap:
            above.append(package.name)
    if "--caps" in sys.argv:
        named = [x for x in sys.argv if x in CAPS] or list(CAPS)
        if wrong := [x for x in named if x in above]:
            sys.exit(f"above its cap: {', '.join(wrong)}")
