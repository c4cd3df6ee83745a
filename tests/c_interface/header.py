"""What include/lamina/c.h declares: functions, structs, numbers, types of functions; and the library through ctypes.

The header is written in a small part of C: a struct is `typedef struct NAME { ... } NAME;`, a member per line end;
an enumeration has no name; a function begins with LAMINA_C_API.
"""

import ctypes
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "include/lamina/c.h"
PLAIN = {
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "double": ctypes.c_double,
    "lamina_c_status": ctypes.c_int32,
    "char": ctypes.c_char,
}


class Header:
    def __init__(self, text):
        code = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
        self.macros = re.findall(r"^#define (\w+)", code, re.MULTILINE)
        code = re.sub(r"^#.*$", "", code, flags=re.MULTILINE)
        code = re.sub(r"\s+", " ", code)
        self.structs = {
            name: [split_declaration(m) for m in body.split(";") if m.strip()]
            for body, name in re.findall(r"typedef struct \w+ \{([^}]*)\} (\w+);", code)
        }
        self.handles = set(re.findall(r"typedef struct (\w+) \1;", code))
        self.numbers = {}
        for body in re.findall(r"enum \{([^}]*)\}", code):
            for pair in body.split(","):
                name, value = pair.split("=")
                self.numbers[name.strip()] = int(value)
        self.callbacks = {
            name: (result.strip(), split_arguments(arguments))
            for result, name, arguments in re.findall(r"typedef ([\w ]+?) ?\(\*(\w+)\)\(([^)]*)\);", code)
        }
        self.plain_types = dict((new, old) for old, new in re.findall(r"typedef (\w+) (\w+);", code))
        self.functions = {}
        for declaration in re.findall(r"LAMINA_C_API ([^;]*);", code):
            declaration = " ".join(declaration.split())
            result, name, arguments = re.match(r"(.*?)(\w+)\((.*)\)$", declaration).groups()
            self.functions[name] = (result.strip(), split_arguments(arguments))


def split_declaration(text):
    """(type, name) of a member or argument; a function pointer's type is "function"."""
    text = " ".join(text.split())
    function = re.match(r".*\(\*(\w+)\)\(.*\)$", text)
    if function:
        return "function", function.group(1)
    kind, name = re.match(r"(.*?)(\w+)$", text).groups()
    return kind.strip(), name


def split_arguments(text):
    parts, depth, last = [], 0, 0
    for at, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(text[last:at])
            last = at + 1
    parts.append(text[last:])
    return [] if text.strip() in ("", "void") else [split_declaration(p) for p in parts]


def signature(result, arguments):
    return f"{result} ({', '.join(kind for kind, _ in arguments) or 'void'})"


def library_path():
    return Path(os.environ["LAMINA_BUILD"]) / "lib" / "liblamina.so"


class Library:
    """The shared object with prototypes, structs and numbers of the header as attributes: lib.model_read(...),
    lib.port, lib.F32. A function with a status raises Failed where it is not 0."""

    def __init__(self, path=None):
        self.header = Header(PATH.read_text())
        self.raw = ctypes.CDLL(str(path or library_path()))
        self.types = dict(PLAIN)
        for name, (result, arguments) in self.header.callbacks.items():
            self.types[name] = ctypes.CFUNCTYPE(
                None if result == "void" else self.type_of(result), *(self.type_of(k) for k, _ in arguments)
            )
        for name, members in self.header.structs.items():
            kind = type(name, (ctypes.Structure,), {})
            self.types[name] = kind
            kind._fields_ = [(member, self.type_of(of)) for of, member in members]
            setattr(self, short(name), self.maker(kind))
        for name, number in self.header.numbers.items():
            setattr(self, name.removeprefix("LAMINA_C_"), number)
        for name, (result, arguments) in self.header.functions.items():
            function = getattr(self.raw, name)
            function.restype = None if result == "void" else self.type_of(result)
            function.argtypes = [self.type_of(kind) for kind, _ in arguments]
            setattr(self, short(name), self.checked(function) if result == "lamina_c_status" else function)

    def type_of(self, text):
        kind = " ".join(text.replace("const", " ").split()).replace(" *", "*")
        if kind == "char*":
            return ctypes.c_char_p
        if kind in self.types:
            return self.types[kind]
        if kind.endswith("**"):
            return ctypes.POINTER(ctypes.c_void_p if kind != "char**" else ctypes.c_char_p)
        if kind.endswith("*") and kind[:-1] in self.types:
            return ctypes.POINTER(self.types[kind[:-1]])
        return ctypes.c_void_p

    @staticmethod
    def maker(kind):
        return lambda **members: kind(size=ctypes.sizeof(kind), **members)

    def checked(self, function):
        def call(*arguments):
            status = function(*arguments)
            if status != 0:
                raise Failed(status, self.last_error().decode())

        return call

    def made(self, function, *arguments):
        """The handle that a function gives through its last argument."""
        out = ctypes.c_void_p()
        function(*arguments, ctypes.byref(out))
        return out

    def got(self, kind, function, *arguments):
        """The plain value that a function gives through its last argument."""
        out = kind()
        function(*arguments, ctypes.byref(out))
        return out.value


class Failed(Exception):
    def __init__(self, status, text):
        super().__init__(text)
        self.status = status
        self.text = text


def short(name):
    return name.removeprefix("lamina_c_")
