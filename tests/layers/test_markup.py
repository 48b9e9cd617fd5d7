"""HTML is made from constant templates. Inserted values are escaped by their type, in places where escaping is
sufficient."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from string import Formatter

import pytest
from project import PROJECT, syntax_trees

TAG = re.compile(r"</?[a-z]|<!|&#?\w+;|(^|\s)[a-z-]+=\"", re.IGNORECASE)
MADE = {
    "_PARSER.render(text)",
    "'\\n'.join([*files('css', STYLES), *of_places('css')])",
    "'\\n'.join(files('css', LOGIN_STYLES))",
    "element.tag",
}
"""The sources of HTML without a template: Markdown's own renderer, the program's style sheets, and the name of a formula's
element, which is in a list of names."""
Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def modules() -> dict[str, ast.Module]:
    """Module → the syntax tree of every module that draws."""
    return {
        name: tree
        for name, tree in syntax_trees().items()
        if name.startswith(("gui/", "render/")) and name != "gui/content_policy.py"
    }


def is_markup(node: ast.AST) -> bool:
    """Return whether this is a call of ``Markup``."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Markup")


def loose_html(tree: ast.AST) -> Iterator[str]:
    """HTML outside ``Markup(...)``. F-strings, joined, added and formatted texts all begin as such a constant."""
    prose = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    raised = {id(part) for n in ast.walk(tree) if isinstance(n, ast.Raise) for part in ast.walk(n)}
    inside = {id(arg) for n in ast.walk(tree) if is_markup(n) for arg in n.args}  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            known = id(node) in prose | raised | inside
            if not known and TAG.search(node.value):
                yield f"line {node.lineno}: {node.value[:60]!r} stands outside of Markup"


def made_html(tree: ast.AST) -> Iterator[str]:
    """Return the arguments of ``Markup`` that are not constants, and so are not escaped."""
    for node in ast.walk(tree):
        if is_markup(node):
            args = node.args  # type: ignore[attr-defined]
            if args and not (isinstance(args[0], ast.Constant) and isinstance(args[0].value, str)):
                yield ast.unparse(args[0])


def fields_between_attributes(template: str) -> list[bool]:
    """For each field of a template: True if it is in a tag outside double quotes, where escaping does not protect."""
    fragment = template.lstrip()[:1] != "<" and re.match(r'\s*[a-z-]+="', template)
    inside, quoted, fields = bool(fragment), False, []
    for words, field, *_ in Formatter().parse(template):
        for character in words:
            if character == '"' and inside:
                quoted = not quoted
            elif character in "<>" and not quoted:
                inside = character == "<"
        if field is not None:
            fields.append(inside and not quoted)
    return fields


def loose_attributes(tree: ast.AST, makers: set[str]) -> Iterator[str]:
    """Fields between attributes that are not HTML by construction: text there could add an attribute."""
    for scope in [n for n in ast.walk(tree) if isinstance(n, Function)]:
        for node in ast.walk(scope):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            template = node.func.value
            if node.func.attr != "format" or not is_markup(template):
                continue
            places = fields_between_attributes(template.args[0].value)  # type: ignore[attr-defined]
            for loose, value in zip(places, node.args, strict=True):
                if loose and not is_html(value, scope, makers):
                    yield f"line {node.lineno}: {ast.unparse(value)} stands between attributes"


def is_html(node: ast.expr, scope: ast.AST, makers: set[str]) -> bool:
    """Return whether an expression is ``Markup`` by construction; ``makers``: functions that return it. mypy proves the annotations."""
    if isinstance(node, ast.IfExp):
        return all(is_html(part, scope, makers) for part in (node.body, node.orelse))
    if isinstance(node, ast.BinOp):
        return all(is_html(part, scope, makers) for part in (node.left, node.right))
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        of = node.func.value if isinstance(node.func, ast.Attribute) else node
        return is_markup(node) or is_markup(of) or called in makers
    name = ast.unparse(node)
    if name.rpartition(".")[2] == "NOTHING":
        return True
    values = list(values_of(name, scope))
    return bool(values) and all(is_html(value, scope, makers) for value in values)


def values_of(name: str, scope: ast.AST) -> Iterator[ast.expr]:
    """Everything assigned to a name in a function; a parameter annotated as HTML counts, too."""
    nothing = ast.parse("NOTHING", mode="eval").body
    for node in ast.walk(scope):
        if isinstance(node, ast.arg) and node.arg == name:
            typed = node.annotation and ast.unparse(node.annotation) == "Markup"
            yield nothing if typed else ast.Constant("text")
        elif isinstance(node, ast.AugAssign) and ast.unparse(node.target) == name:
            yield node.value
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = zip(target.elts, node.value.elts)
                    yield from (value for part, value in pairs if ast.unparse(part) == name)
                elif ast.unparse(target) == name:
                    yield node.value


def makers_of(trees: dict[str, ast.Module]) -> set[str]:
    """The functions that return HTML."""
    return {
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, Function) and node.returns and ast.unparse(node.returns) == "Markup"
    }


def test_all_html_is_a_constant_template() -> None:
    assert {n: x for n, tree in modules().items() if (x := list(loose_html(tree)))} == {}


def test_only_markdown_formulas_and_our_own_style_sheets_are_html_without_a_template() -> None:
    assert {made for tree in modules().values() for made in made_html(tree)} == MADE


def test_between_attributes_stands_html_alone() -> None:
    trees = modules()
    makers = makers_of(trees)
    loose = {n: x for n, tree in trees.items() if (x := list(loose_attributes(tree, makers)))}
    assert loose == {}


@pytest.mark.parametrize(
    "code",
    [
        'f"<b>{name}</b>"',
        '"<b>" + name + "</b>"',
        '"<b>%s</b>" % name',
        '"<b>{}</b>".format(name)',
        '"".join(["<b>", name, "</b>"])',
        "f' title=\"{name}\"'",
        'name.replace("x", "<br>")',
    ],
)
def test_the_check_sees_html_that_is_put_together_from_text(code: str) -> None:
    assert list(loose_html(ast.parse(f"shown = {code}")))


def test_the_check_sees_text_that_is_declared_html() -> None:
    assert list(made_html(ast.parse("Markup(name)"))) == ["name"]
    assert list(made_html(ast.parse('markupsafe.Markup(f"<b>{name}</b>")')))
    assert not list(made_html(ast.parse('Markup("<b>{}</b>").format(name)')))


@pytest.mark.parametrize(
    "code",
    [
        "def f(name):\n return Markup('<b {}>').format(name)",
        "def f(name: str):\n return Markup('<b title={}>').format(name)",
        "def f(name):\n more = f' {name}' if name else Markup()\n return Markup('<b{}>').format(more)",
        "def f(name):\n return Markup(' a=\"{}\"{}').format(name, name)",
        "def f(name):\n return Markup('<{}>').format(name)",
    ],
)
def test_the_check_sees_text_between_attributes(code: str) -> None:
    assert list(loose_attributes(ast.parse(code), set()))


def test_the_check_permits_html_between_attributes() -> None:
    code = "def f(name, more: Markup):\n a = Markup(' b')\n a += more\n return Markup('<b c=\"{}\"{}{}>').format(name, a, g())"
    assert not list(loose_attributes(ast.parse(code), {"g"}))


SINKS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\(|new Function|setAttribute\('on"
)


def scripts() -> dict[str, str]:
    """File name → the text of every script of the page, without those of other projects."""
    folder = PROJECT / "rallebench" / "gui"
    own = (path for path in folder.rglob("*.js") if path.parent.name != "vendor")
    return {path.name: path.read_text(encoding="utf-8") for path in own}


def test_the_script_makes_html_in_two_places_and_only_of_what_python_sent_as_html() -> None:
    sinks = [(name, line.strip()) for name, text in scripts().items() for line in text.splitlines()]
    assert [(name, line) for name, line in sinks if SINKS.search(line)] == [
        ("patches.js", "el.innerHTML = html;"),
        ("patches.js", "t.insertAdjacentHTML('beforeend', undo);"),
    ]


def test_the_script_puts_numbers_and_sent_rows_into_its_one_template() -> None:
    templates = [
        line for text in scripts().values() for line in re.findall(r"`[^`]*[<=\"][^`]*`", text)
    ]
    values = {value for template in templates for value in re.findall(r"\$\{(.*?)\}", template)}
    numbers = {"total", "i", "i + 1", "i * height", "height"}
    row = {"on", "about", "on ? ' on' : ''", "list.id", "row ? row[1] : ''"}
    assert values == numbers | row  # ``about``: one of two templates, which hold only numbers
