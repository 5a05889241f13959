"""Python that a line brings along itself: whether it only computes and prints, and which files it reads.

Every name, module and attribute has to be on a list. None of these leads to code, files or processes but by a call
that is looked at here, so what is not on the lists is a question.
"""

from __future__ import annotations

import ast
import os
import sys

import msgspec

from toolyard.permissions.programs.categories import names

LONGEST = 4000
MODULES = names("""
    json collections math re sys sysconfig platform string textwrap itertools functools statistics datetime csv
    base64 hashlib operator decimal fractions random time calendar difflib unicodedata struct bisect heapq keyword
    html tomllib ast
""")
FUNCTIONS = names("""
    print len sum min max sorted range enumerate zip list dict set tuple frozenset str int float bool abs round any
    all map filter reversed repr chr ord hex bin oct divmod pow isinstance open iter next bytes ascii hash slice
    complex True False None
""")
ATTRIBUTES = names("""
    load loads dumps get items keys values append extend split rsplit splitlines strip lstrip rstrip join lower
    upper title startswith endswith replace count index find sort reverse pop add update most_common Counter
    defaultdict OrderedDict deque namedtuple findall search match sub finditer group groups fullmatch compile
    IGNORECASE MULTILINE DOTALL version version_info platform maxsize byteorder executable prefix base_prefix argv
    stdin implementation name get_paths get_path get_platform get_python_version python_version
    python_implementation machine system release processor architecture node read readline readlines sqrt floor ceil
    log log2 log10 pi e pow gcd factorial sin cos tan isnan inf mean median stdev mode pstdev variance today now
    date datetime timedelta fromtimestamp fromisoformat isoformat strftime strptime total_seconds days seconds year
    month day hour minute utcnow timezone utc timestamp weekday reader DictReader fieldnames b64encode b64decode
    encode decode hexdigest sha256 sha1 md5 sha512 blake2b isdigit isalpha isalnum isupper islower zfill ljust rjust
    center partition rpartition casefold chain islice groupby combinations permutations product accumulate
    zip_longest count repeat starmap reduce partial lru_cache itemgetter dedent indent wrap fill shorten
    ascii_letters ascii_lowercase digits punctuation Decimal Fraction randint choice seed sample shuffle
    unified_diff union intersection difference issubset symmetric_difference copy removeprefix removesuffix
    monotonic perf_counter time major minor micro kwlist escape unescape category setdefault format_map insert
    remove clear real imag numerator denominator bit_length to_bytes from_bytes hex stdlib_module_names iskeyword
    literal_eval
""")
STATEMENTS = (
    *(
        ast.Module,
        ast.Expr,
        ast.Assign,
        ast.AugAssign,
        ast.AnnAssign,
        ast.For,
        ast.While,
        ast.If,
        ast.With,
        ast.withitem,
        ast.Import,
    ),
    *(
        ast.ImportFrom,
        ast.alias,
        ast.Pass,
        ast.Break,
        ast.Continue,
        ast.FunctionDef,
        ast.Return,
        ast.arguments,
        ast.arg,
        ast.Assert,
    ),
    *(
        ast.Call,
        ast.Name,
        ast.Load,
        ast.Store,
        ast.Constant,
        ast.Attribute,
        ast.Subscript,
        ast.Slice,
        ast.keyword,
        ast.Starred,
    ),
    *(
        ast.BinOp,
        ast.UnaryOp,
        ast.BoolOp,
        ast.Compare,
        ast.operator,
        ast.unaryop,
        ast.boolop,
        ast.cmpop,
        ast.IfExp,
        ast.Lambda,
    ),
    *(
        ast.List,
        ast.Tuple,
        ast.Dict,
        ast.Set,
        ast.ListComp,
        ast.SetComp,
        ast.DictComp,
        ast.GeneratorExp,
        ast.comprehension,
    ),
    *(ast.JoinedStr, ast.FormattedValue, ast.NamedExpr, ast.Try, ast.ExceptHandler, ast.Raise, ast.Delete, ast.Del),
)
READS = frozenset({"r", "rb", "rt"})


class Computes(msgspec.Struct, frozen=True):
    """Code that only computes and prints."""

    reads: tuple[str, ...]
    """The files that it opens."""


def computes(code: str) -> Computes | None:
    """What code does that only computes and prints; None for any other."""
    if len(code) > LONGEST:
        return None
    try:
        tree = ast.parse(code)
        nodes = list(ast.walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    own = own_names(nodes)
    if own & (FUNCTIONS | MODULES) or not all(is_known(node, own) for node in nodes):
        return None
    opened = [opened_by(node) for node in nodes if isinstance(node, ast.Call) and is_name(node.func, "open")]
    mentioned = sum(is_name(node, "open") for node in nodes)
    if None in opened or mentioned != len(opened):
        return None
    return Computes(tuple(path for path in opened if path is not None))


def own_names(nodes: list[ast.AST]) -> frozenset[str]:
    """The names that the code gives to values itself."""
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    stored |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    stored |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    stored |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    imported = (alias for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names)
    return frozenset(stored | {alias.asname or alias.name for alias in imported})


def is_known(node: ast.AST, own: frozenset[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in own or name in FUNCTIONS or name in MODULES or name in ERRORS
        case ast.Attribute(attr=name, ctx=ast.Load()):
            return name in ATTRIBUTES
        case ast.Attribute():
            return False
        case ast.Import():
            return all(alias.name in MODULES and alias.asname is None for alias in node.names)
        case ast.ImportFrom(module=module, level=0):
            return module in MODULES and all(alias.name in ATTRIBUTES for alias in node.names)
        case ast.FunctionDef():
            return not node.decorator_list
        case ast.FormattedValue() | ast.Constant():
            return True
    return isinstance(node, STATEMENTS)


ERRORS = names(
    "Exception ValueError KeyError IndexError TypeError FileNotFoundError OSError ZeroDivisionError StopIteration"
)


def is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def opened_by(call: ast.Call) -> str | None:
    """The file that a call opens to read it, if it is spelled out."""
    path = call.args[0] if call.args else None
    modes = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
    is_plain = (
        all(word.arg in ("mode", "encoding", "errors", "newline") for word in call.keywords) and len(call.args) <= 2
    )
    reads = all(isinstance(mode, ast.Constant) and mode.value in READS for mode in modes)
    is_text = isinstance(path, ast.Constant) and isinstance(path.value, str)
    return (
        path.value
        if is_plain and reads and is_text and isinstance(path, ast.Constant) and isinstance(path.value, str)
        else None
    )


def shadows_modules(folder: str) -> bool:
    """Whether python would find a file of a folder in the place of one of its own modules."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return True
    return any(
        entry.name.partition(".")[0] in sys.stdlib_module_names
        and (
            os.path.splitext(entry.name)[1] in (".py", ".pyc", ".so")
            or os.path.exists(os.path.join(entry.path, "__init__.py"))
        )
        for entry in entries
    )
