"""The table of docs/c-api.md has every public member of the C++ headers, and each function that it names is there."""

import re
import sys

from header import PATH, ROOT, Header

HEADERS = ("benchmark.h", "check.h", "draw.h", "error.h", "explain.h", "limits.h", "listings.h", "log.h", "model.h", "optimize.h", "options.h", "partial_shape.h", "preprocess.h", "progress.h", "quantize.h", "reference.h", "tensor.h")
PAGE = ROOT / "docs/c-api.md"
EXPORTS = ROOT / "tests/api/exports.txt"
INTERNAL = {"detail", "LoadedModel", "Compiled", "RequestPool", "Inside", "lamina_host", "lamina_registrar"}
SCOPE = re.compile(r"\b(class|struct|enum class)\s+(?:LAMINA_API\s+)?(\w+)[^;{}()]*$")


def without_comments(text):
    text = re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
    text = re.sub(r"^ *#.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"= *(?:[\w:]+)?\{[^{};]*\}[^;,(){}]*;", ";", text)  # initial values of fields
    text = re.sub(r"= *\{\}(?=[,)])", "", text)  # of arguments
    while (shorter := re.sub(r"(?<=\w)<[^<>;{}()]*>", "", text)) != text:  # arguments of templates
        text = shorter
    return text


def blocks(text):
    """Pieces of a scope's text: (declaration, body), where the body is None if it has none."""
    at = start = 0
    while at < len(text):
        if text[at] == ";":
            yield text[start:at].strip(), None
            start = at + 1
        elif text[at] == "{":
            depth, end = 1, at + 1
            while depth:
                depth += (text[end] == "{") - (text[end] == "}")
                end += 1
            yield text[start:at].strip(), text[at + 1 : end - 1]
            at, start = end - 1, end
        at += 1


def name_of(declaration):
    """The name, or the fields' names, that a declaration in a scope declares; None: nothing of the user's."""
    declaration = re.sub(r"^(public|LAMINA_API)\s*:?", "", declaration.strip()).strip()
    if not declaration or re.match(r"(friend|using namespace|static_assert|private|template <>)\b|[,=~{(]|\w+\(std::exchange", declaration):
        return "~" if declaration.startswith("~") else None
    using = re.match(r"using (\w+)", declaration)
    if using:
        return using.group(1)
    operator = re.search(r"\boperator\s*(\(\)|[^\s(]+)\s*\(", declaration)
    if operator:
        return "operator" + operator.group(1)
    declaration = re.sub(r"^template\s*<[^{;]*?>\s*(requires\s.*?>\s)?", "", declaration)
    function = re.search(r"(~?\w+)\s*\(", declaration)
    if function and "=" not in declaration[: function.start()]:
        return function.group(1)
    return [re.sub(r"\s*=.*", "", part, flags=re.DOTALL).split()[-1] for part in declaration.split(",")]


def members(text, scope=""):
    """Qualified names of what a text declares in public."""
    private = False
    for declaration, body in blocks(text):
        for access in re.findall(r"\b(public|private|protected)\s*:", declaration):
            private = access != "public"
        if re.match(r"^[,;\s]*$", declaration):
            continue
        declaration = re.split(r"\b(?:public|private|protected)\s*:", declaration)[-1].strip()
        opened = SCOPE.search(declaration) if body is not None else None
        space = re.match(r"(?:inline )?namespace (\w+)", declaration)
        if private or (space and space.group(1) in INTERNAL) or (body is None and re.match(r"(class|struct) \w+$", declaration)):
            continue
        if space:
            yield from members(body, scope)
        elif opened:
            kind, name = opened.groups()
            yield scope + name
            if kind != "enum class":
                yield from members(body, f"{scope}{name}::")
        else:
            names = name_of(declaration) or []
            for name in [names] if isinstance(names, str) else names:
                if re.match(r"\w+(?<!_)$|operator", name):
                    yield scope + name


def declared():
    out = []
    for header in HEADERS:
        text = without_comments((ROOT / "include/lamina" / header).read_text())
        out += [name for name in members(text) if name not in out]
    return out


def main():
    if "--list" in sys.argv:
        print("\n".join(declared()))
        return
    rows = [line.split("|")[1:3] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    named = {name for first, _ in rows for name in re.findall(r"`([\w:~<>=()]+)`", first)}
    wanted = declared()
    exported = set(re.findall(r"^lamina::((?:\w+::)?(?:operator(?:\(\)|<<|=)|\w+))(?:\[abi:cxx11\])?\(", EXPORTS.read_text(), re.MULTILINE))
    missed = sorted(n for n in exported if n not in wanted and n not in ("Tensor::check_view", "Tensor::copied"))
    faults = [f"this test does not see {name} in the headers" for name in missed]
    faults += [f"{PAGE.name}: the table has no row for {name}" for name in wanted if name not in named]
    functions = Header(PATH.read_text())
    known = set(functions.functions) | set(functions.structs) | set(functions.callbacks) | functions.handles
    known |= set(functions.numbers) | set(functions.macros) | set(functions.plain_types)
    for name in re.findall(r"\b(?:lamina_c|LAMINA_C)_\w+", PAGE.read_text()):
        if name not in known and not re.fullmatch(r"LAMINA_C_\d+", name) and not any(k.startswith(name) for k in known if name.endswith("_")):
            faults.append(f"{PAGE.name}: lamina/c.h has no {name}")
    faults += [f"{PAGE.name}: no word about {name}" for name in functions.functions if name not in PAGE.read_text()]
    for fault in faults:
        print(fault)
    if faults or len(wanted) < 100:
        sys.exit(1)
    print(f"{len(wanted)} names of the C++ interface, each with its row")


if __name__ == "__main__":
    main()
