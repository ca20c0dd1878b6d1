"""How large and how dense the packages below src/ are; exits 1 above a limit.

Size is the number of tokens without comments, docstrings and annotations. SQL and
templates count by words and signs, and so does a string of more than one line in the
code, which mostly is SQL. Density is the number of constructs per 1,000 lines of code.
`-v` prints the tokens of every file. The numbers are the same with every Python from
3.11 on. CI runs this; `make test` does not, so that an estimator of your own never
fails for its size.
"""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src"
MOST_TOKENS = {"paperlib": 18_500, "paperfigs": 12_000, "recrawl": 64_000}
# Conditional expressions, and assignments of three or more names at once, per 1,000
# lines. Libraries that are easy to read have 4 to 10 and 0 to 4.
MOST_CONDITIONALS = {"paperlib": 12, "paperfigs": 12}
MOST_TRIPLES = {"paperlib": 3, "paperfigs": 3}
NO_TOKEN = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def is_docstring(statement):
    """Whether a statement is a string and nothing else."""
    if not isinstance(statement, ast.Expr):
        return False
    value = statement.value
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


class Plain(ast.NodeTransformer):
    """Drops docstrings and annotations, and makes one string of an f-string."""

    def generic_visit(self, node):
        super().generic_visit(node)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not is_docstring(line)]
            node.body = node.body or [ast.Pass()]
        return node

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_AnnAssign(self, node):
        # An annotated field of a class stays a line of the code.
        node.annotation = ast.Constant("type")
        return self.generic_visit(node)

    def visit_JoinedStr(self, node):
        return ast.Constant("f-string")


def words(text):
    """Number of words and signs of SQL or a template, without its comments."""
    without_comments = re.sub(r"--.*|\{#.*?#\}", "", text)
    return len(re.findall(r"\w+|[^\w\s]", without_comments))


def tokens(path):
    """Number of tokens of a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return words(text)
    tree = ast.fix_missing_locations(Plain().visit(ast.parse(text)))
    lines = io.StringIO(ast.unparse(tree) + "\n")
    kinds = [token.type for token in tokenize.generate_tokens(lines.readline)]
    count = sum(1 for kind in kinds if kind not in NO_TOKEN)
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    for value in values:
        if isinstance(value, str) and value.count("\n") > 1:
            count += words(value)
    return count


def lines_of_code(text, tree):
    """Number of lines of a module that are not empty, comments or docstrings."""
    lines = [line.strip() for line in text.splitlines()]
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            for statement in filter(is_docstring, node.body[:1]):
                for number in range(statement.lineno, statement.end_lineno + 1):
                    lines[number - 1] = ""
    return len([line for line in lines if line and not line.startswith("#")])


def is_triple(node):
    """Whether a node is an assignment such as a, b, c = x, y, z."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    return isinstance(node.targets[0], ast.Tuple) and len(node.value.elts) > 2


def measure(package):
    """Print one row of the table, and return what is above its limit."""
    files = [path for path in sorted(package.rglob("*")) if path.is_file()]
    modules = [path for path in files if path.suffix == ".py"]
    counted = [path for path in files if path.suffix in {".py", ".sql", ".jinja"}]
    sizes = {path: tokens(path) for path in counted}
    n_lines, nodes = 0, []
    for path in modules:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        n_lines += lines_of_code(text, tree)
        nodes += ast.walk(tree)
    conditionals = [node for node in nodes if isinstance(node, ast.IfExp)]
    triples = [node for node in nodes if is_triple(node)]
    name = package.name
    rows = [
        ("tokens", sum(sizes.values()), MOST_TOKENS),
        ("conditionals", 1000 * len(conditionals) / n_lines, MOST_CONDITIONALS),
        ("triples", 1000 * len(triples) / n_lines, MOST_TRIPLES),
    ]
    cells = [f"{name:10}{len(counted):6d}{n_lines:9,d}"]
    above = []
    for what, value, limits in rows:
        written = f"{value:10,.1f}".removesuffix(".0")
        limit = limits.get(name)
        if limit:
            written += f" of {limit:,d}"
            if value > limit:
                above.append(f"{what} of {name}")
        cells.append(f"{written:22}")
    print("".join(cells).rstrip())
    if "-v" in sys.argv:
        for path, size in sizes.items():
            print(f"{size:12,d}  {path.relative_to(SOURCES)}")
    return above


def main():
    """Print the table, and fail if a package is above a limit."""
    print("package    files    lines  tokens             conditionals          triples")
    above = []
    for package in sorted(SOURCES.iterdir()):
        if (package / "__init__.py").is_file():
            above += measure(package)
    if above:
        sys.exit(f"above the limit: {', '.join(above)}")


if __name__ == "__main__":
    main()
