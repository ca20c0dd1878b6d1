"""Names in backquotes in docstrings exist."""

import ast
import builtins
import functools
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

PACKAGES = "paperlib", "paperfigs", "recrawl"
LITERALS = r"``.*?``|:\w+:`[^`]*`"  # code, and roles such as :math:
SCOPES = ast.Module, ast.ClassDef, ast.FunctionDef


@functools.cache
def modules(package):
    """Modules of a package, itself among them."""
    top = importlib.import_module(package)
    walked = pkgutil.walk_packages(top.__path__, f"{package}.")
    names = [module.name for module in walked if "__main__" not in module.name]
    return [top, *map(importlib.import_module, names)]


def code(module):
    return ast.parse(Path(module.__file__).read_text(encoding="utf-8"))


@functools.cache
def members(package):
    """All that a package defines, by every end of its full name, and SQL's words."""
    full = set()
    for module in modules(package):
        full.add(module.__name__)
        for name, member in vars(module).items():
            home = getattr(member, "__module__", None) or module.__name__
            if home.split(".")[0] != package:  # imported from elsewhere
                continue
            full.add(f"{module.__name__}.{name}")
            if isinstance(member, type):
                fields = {*dir(member), *inspect.get_annotations(member)}
                full |= {f"{module.__name__}.{name}.{field}" for field in fields}
    parts = [name.split(".") for name in full]
    return {".".join(part[n:]) for part in parts for n in range(len(part))}


@functools.cache
def columns(package):
    """Words of the SQL of a package: names of tables and columns, mostly."""
    words = set()
    for path in Path(modules(package)[0].__file__).parent.rglob("*.sql"):
        sql = re.sub(r"--.*", "", path.read_text(encoding="utf-8"))
        words |= set(re.findall(r"\w+", sql))
    return words


def docstrings(node, scopes=()):
    """Docstrings of a module and of all in it, with the scopes around each."""
    if isinstance(node, SCOPES):
        scopes = (*scopes, node)
        text = ast.get_docstring(node)
        if text:
            yield scopes, text
    for child in ast.iter_child_nodes(node):
        yield from docstrings(child, scopes)


def own_names(scope):
    """Parameters, variables, fields, keywords and texts in the code of a scope."""
    for node in ast.walk(scope):
        if isinstance(node, (ast.arg, ast.keyword)):
            yield node.arg
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant):
            yield node.value
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name


def importable(name):
    """Whether a name is that of a module, or of a member of one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            member = importlib.import_module(".".join(parts[:n]))
        except ImportError:
            continue
        for part in parts[n:]:
            member = getattr(member, part, None)
        return member is not None
    return False


def exists(name, package, module, scopes):
    """Whether a name in a docstring means something there."""
    if " " in name or name in members(package):  # a command has spaces
        return True
    if set(name.split(".")) <= columns(package):
        return True
    # The head of a module describes its code; a function may name the module's.
    if name in own_names(scopes[1] if len(scopes) > 1 else scopes[0]):
        return True
    member = module
    for part in name.split("."):
        member = getattr(member, part, None)
    return member is not None or name in vars(builtins) or importable(name)


@pytest.mark.parametrize("package", PACKAGES)
def test_names_in_docstrings_exist(package):
    stale = []
    for module in modules(package):
        for scopes, text in docstrings(code(module)):
            text = re.sub(LITERALS, "", text, flags=re.S)
            for name in re.findall(r"`([^`]+)`", text):
                if not exists(name, package, module, scopes):
                    inner = [scope.name for scope in scopes[1:]]
                    stale.append(f"{'.'.join([module.__name__, *inner])}: {name}")
    assert not stale, "\n".join(stale)
