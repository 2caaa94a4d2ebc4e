"""A notebook's declared parameters, checked: an unknown name, a wrong type or a bad value stops at once.

The parameters cell holds one declaration a line, ``name: type = default  # what it is, unit, allowed: …``.
After ``allowed:`` stands ``a | b | c`` (exact values), a bound such as ``>= 1`` or ``> 0``, or a range
``0..1``; for a list it holds for each element. papermill only warns about an unknown name; `check` raises.
"""

import ast
import difflib
import io
import linecache
import math
import re
import tokenize
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SIMPLE_TYPES = {"int": int, "float": float, "str": str, "bool": bool, "None": type(None)}
INJECTED = "# Parameters"  # the first line of the cell that papermill puts below the parameters cell
BOUND = re.compile(r"(>=|<=|>|<)\s*(\S+)")
RANGE = re.compile(r"(\S+?)\s*\.\.\s*(\S+)")


class ParameterError(ValueError):
    """A parameter that the notebook does not take, or a value that it cannot take."""


@dataclass(frozen=True)
class Parameter:
    """One declared parameter; type, default and allowed values stand as they are written in the cell."""

    name: str
    type: str
    default: str
    meaning: str = ""
    allowed: str = ""

    def __str__(self) -> str:
        """Return the declaration as one line of a parameters cell."""
        allowed = f"; allowed: {self.allowed}" if self.allowed else ""
        remark = f"{self.meaning}{allowed}".removeprefix("; ")
        return f"{self.name}: {self.type} = {self.default}" + (f"  # {remark}" if remark else "")


def declared(source: str) -> tuple[Parameter, ...]:
    """Return the parameters that a cell declares; empty when the cell holds anything but typed declarations.

    Parameters
    ----------
    source : str
        The cell's code.

    Returns
    -------
    tuple of Parameter
        In the order of the cell.

    Examples
    --------
    >>> [seed] = declared("seed: int = 0  # of the split, allowed: >= 0")
    >>> seed.name, seed.type, seed.default, seed.meaning, seed.allowed
    ('seed', 'int', '0', 'of the split', '>= 0')
    >>> declared("seed = 0")
    ()
    """
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return ()
    typed = [line for line in body if isinstance(line, ast.AnnAssign) and line.value is not None]
    if len(typed) != len(body) or not all(isinstance(line.target, ast.Name) for line in typed):
        return ()
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    remarks = {token.start[0]: token.string[1:] for token in tokens if token.type == tokenize.COMMENT}
    return tuple(_parameter(line, remarks.get(line.end_lineno or line.lineno, "")) for line in typed)


def validate(
    parameters: Iterable[Parameter], values: Mapping[str, object], *, where: str = "this notebook"
) -> None:
    """Raise unless every value has a declared name, the declared type and an allowed value.

    Parameters
    ----------
    parameters : iterable of Parameter
        What is declared.
    values : mapping of str to object
        Names and values to check; declared names may be absent.
    where : str
        What takes the parameters, for the message.

    Raises
    ------
    ParameterError
        With the reason and the list of all valid names, types and allowed values.

    Examples
    --------
    >>> validate(declared("seed: int = 0"), {"sead": 1})
    Traceback (most recent call last):
    biastransfer.parameters.ParameterError: this notebook has no parameter 'sead'; did you mean 'seed'?
    Its parameters:
      seed: int = 0
    """
    known = {parameter.name: parameter for parameter in parameters}
    complaints = [_complaint(name, value, known, where) for name, value in values.items()]
    if found := [complaint for complaint in complaints if complaint]:
        valid = "\n".join(f"  {parameter}" for parameter in known.values())
        raise ParameterError("; ".join(found) + f"\nIts parameters:\n{valid}")


def check(namespace: Mapping[str, object]) -> None:
    """Check the running notebook's parameters; call it as ``check(globals())`` below the parameters cell.

    The declarations are those of the parameters cell as last executed, so an edited cell counts as it now
    stands. The names that papermill injected below it must be among them.

    Parameters
    ----------
    namespace : mapping of str to object
        The notebook's ``globals()``; IPython keeps the executed cells in its ``In`` or, for clients that ask
        for no history, as nbval does, in `linecache` alone.

    Raises
    ------
    ParameterError
        When a name is unknown, a value has the wrong type or is not allowed, or no parameters cell was run.
    """
    cells = [str(cell) for cell in namespace.get("In", ())]  # type: ignore[attr-defined]
    if not any(map(declared, cells)):
        compiled = [
            entry[2] for name, entry in linecache.cache.items() if "ipykernel" in name and len(entry) == 4
        ]
        cells = ["".join(lines) for lines in compiled]
    starts = [number for number, cell in enumerate(cells) if declared(cell)]
    if not starts:
        raise ParameterError(
            "check needs a parameters cell run before it, one `name: type = default  # meaning` a line; "
            "got none. Run the notebook from its top."
        )
    parameters = declared(cells[starts[-1]])
    wanted = {parameter.name for parameter in parameters}
    for cell in cells[starts[-1] + 1 :]:
        if cell.lstrip().startswith(INJECTED):
            wanted.update(_assigned(cell))
    validate(parameters, {name: namespace[name] for name in sorted(wanted) if name in namespace})


def _parameter(line: ast.AnnAssign, remark: str) -> Parameter:
    meaning, _, allowed = remark.partition("allowed:")
    name, kind, default = (
        ast.unparse(part) for part in (line.target, line.annotation, line.value or line.target)
    )
    return Parameter(name, kind, default, meaning.lstrip().rstrip(" ,;."), allowed.strip())


def _assigned(cell: str) -> list[str]:
    targets = [
        target for line in ast.parse(cell).body if isinstance(line, ast.Assign) for target in line.targets
    ]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _complaint(name: str, value: object, known: Mapping[str, Parameter], where: str) -> str:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        return f"{where} has no parameter {name!r}" + (f"; did you mean {near[0]!r}?" if near else ".")
    parameter = known[name]
    if not _has_type(value, ast.parse(parameter.type, mode="eval").body):
        return f"{name} must be of type {parameter.type}; got {value!r} ({type(value).__name__})."
    if unfit := [
        item for item in (value if isinstance(value, list) else [value]) if not _fits(item, parameter.allowed)
    ]:
        each = "each element of " if isinstance(value, list) else ""
        return f"{each}{name} must be {_words(parameter.allowed)}; got {unfit[0]!r}."
    return ""


def _has_type(value: object, annotation: ast.expr) -> bool:
    if isinstance(annotation, ast.BinOp):  # a | b
        return _has_type(value, annotation.left) or _has_type(value, annotation.right)
    if isinstance(annotation, ast.Subscript):  # list[a]
        return isinstance(value, list) and all(_has_type(item, annotation.slice) for item in value)
    written = ast.unparse(annotation)
    if written not in SIMPLE_TYPES:
        raise ParameterError(
            f"a parameter's type must be one of {', '.join(SIMPLE_TYPES)}, list[…] or a | b; got {written}."
        )
    if written == "float":
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return type(value) is SIMPLE_TYPES[written]


def _fits(value: object, allowed: str) -> bool:
    if not allowed or value is None:
        return True
    if bound := BOUND.fullmatch(allowed):
        sign, limit = bound[1], float(bound[2])
        return {">=": value >= limit, "<=": value <= limit, ">": value > limit, "<": value < limit}[sign]  # type: ignore[operator]
    if limits := RANGE.fullmatch(allowed):
        return float(limits[1]) <= value <= float(limits[2])  # type: ignore[operator]
    return str(value) in _choices(allowed) or value in map(_literal, _choices(allowed))


def _choices(allowed: str) -> list[str]:
    return [choice.strip().strip("\"'") for choice in allowed.split("|")]


def _literal(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def _words(allowed: str) -> str:
    if BOUND.fullmatch(allowed):
        return allowed
    if limits := RANGE.fullmatch(allowed):
        return f"between {limits[1]} and {limits[2]}"
    return "one of " + ", ".join(_choices(allowed))
