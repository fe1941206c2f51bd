"""The keys that a Lua script reaches, from its text: a small data-flow analysis of luaparser's tree.

A key is sound when it is `KEYS[…]`, a variable that is only ever given sound keys, a parameter that every
call of its function gives one, or the result of a function that always returns one. Whatever the analysis
cannot follow (a table of keys, an alias of redis.call) counts as unsound: it may refuse, never overlook.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from luaparser import ast, astnodes

Node: TypeAlias = Any  # luaparser has no type information

KEYLESS = {"PING", "PUBLISH", "TIME"}
ALL_KEYS = {"DEL", "EXISTS", "MGET", "PFMERGE", "TOUCH", "UNLINK"}
ALL_KEYS |= {"SDIFF", "SDIFFSTORE", "SINTER", "SINTERSTORE", "SUNION", "SUNIONSTORE"}
TWO_KEYS = {"COPY", "GEOSEARCHSTORE", "LMOVE", "RENAME", "RENAMENX", "RPOPLPUSH", "SMOVE", "ZRANGESTORE"}
KEYS_ELSEWHERE = {"BITOP", "EVAL", "EVALSHA", "FCALL", "KEYS", "MIGRATE", "MSET", "MSETNX", "SCAN", "SORT"}
KEYS_ELSEWHERE |= {"ZDIFFSTORE", "ZINTERSTORE", "ZUNIONSTORE"}
KEY_SECOND = {"OBJECT", "XGROUP", "XINFO"}
OPAQUE = {"_G", "getfenv", "load", "loadstring", "rawget", "rawset", "setfenv", "setmetatable"}

_HEADER_KEYS = re.compile(r"KEYS(?:\[(\d+)(?:(\.\.|…|-)(\d*))?\])?\s")
_FUNCTIONS = (astnodes.AnonymousFunction, astnodes.Function, astnodes.LocalFunction)


def problems(source: str) -> list[str]:
    """Return the problems of a script; none if it is sound."""
    return [*_header_problems(source), *_Script(source).problems()]


def _header(source: str) -> list[str]:
    lines = iter(source.splitlines())
    header = []
    while (line := next(lines, "")).startswith("--"):
        header.append(line.removeprefix("--").strip() + " ")
    return header


def _header_problems(source: str) -> Iterator[str]:
    for word in ("KEYS", "ARGV", "Output"):
        if not any(line.startswith(word) for line in _header(source)):
            yield f"the header does not say {word}"


def _documented(source: str) -> set[int] | None:
    """Return the numbers of KEYS that the header lists; None if it leaves their number open."""
    numbers: set[int] = set()
    for line in _header(source):
        if found := _HEADER_KEYS.match(line):
            first, through, last = found.groups()
            if first is None or (through and not last):
                return None
            numbers.update(range(int(first), int(last or first) + 1))
    return numbers


@dataclass(eq=False)
class _Variable:
    """One local, parameter or global, with everything that it is ever given."""

    given: list[_Source] = field(default_factory=list)
    escapes: bool = False


@dataclass(eq=False)
class _Expression:
    """One value of an expression: the first, unless it is a call that returns several."""

    node: Node
    place: int = 0


@dataclass(eq=False)
class _Parameter:
    function: Node
    place: int


@dataclass(eq=False)
class _Unknown:
    """Something the analysis does not follow."""


_Source: TypeAlias = _Expression | _Parameter | _Unknown


class _Script:
    def __init__(self, source: str) -> None:
        self.documented = _documented(source)
        self.bound: dict[int, _Variable] = {}  # what each use of a name refers to
        self.owners: dict[int, _Variable] = {}  # the variable, or table in one, that holds a function
        self.calls: list[Node] = []
        self.returns: dict[int, list[Node]] = {}
        self.indexes: list[Node] = []
        self.callees: set[int] = set()
        self.scopes: list[dict[str, _Variable]] = [{}]
        self.functions: list[Node] = []
        self.assumed: set[int] = set()
        self.opaque: list[str] = []
        self._visit(ast.parse(source))

    def problems(self) -> Iterator[str]:
        yield from self.opaque
        for index in self.indexes:
            if _is_redis_call(index) and id(index) not in self.callees:
                yield "redis.call is used as a value, so its keys cannot be followed"
            if _is_name(index.value, "redis") and not isinstance(index.idx, astnodes.Name):
                yield "redis is indexed by an expression, so its calls cannot be followed"
            if _is_keys(index):
                yield from self._number_problems(index.idx)
        for call in self.calls:
            if _is_redis_call(call.func):
                yield from self._call_problems(call)

    def _number_problems(self, number: Node) -> Iterator[str]:
        if self.documented is None:
            return
        if not isinstance(number, astnodes.Number):
            yield "KEYS is indexed by an expression, but the header lists single keys"
        elif number.n not in self.documented:
            yield f"KEYS[{number.n}] is not in the header"

    def _call_problems(self, call: Node) -> Iterator[str]:
        command = call.args[0] if call.args else None
        name = command.raw.upper() if isinstance(command, astnodes.String) else None
        if name in KEYLESS:
            return
        if name in KEYS_ELSEWHERE:
            yield f"{name} has its keys where this check does not look"
            return
        first = 2 if name in KEY_SECOND else 1
        keys = call.args[1:] if name in ALL_KEYS else call.args[first : 3 if name in TWO_KEYS else first + 1]
        if not keys:
            yield f"{name or 'a command'} is given no key"
        for key in keys:
            if not self._is_sound(_Expression(key)):
                yield f"{name or 'a command'} is given a key that does not come from KEYS: {_shown(key)}"

    def _is_sound(self, source: _Source) -> bool:
        if isinstance(source, _Unknown):
            return False
        if isinstance(source, _Parameter):
            return self._parameter_is_sound(source)
        node = source.node
        if isinstance(node, astnodes.Index):
            return _is_keys(node)
        if isinstance(node, astnodes.Name):
            return self._variable_is_sound(self.bound[id(node)])
        if isinstance(node, astnodes.Call):
            return _is_given_keys(node) or self._result_is_sound(node, source.place)
        return False

    def _variable_is_sound(self, variable: _Variable) -> bool:
        if id(variable) in self.assumed:
            return True  # a variable that is given itself is as sound as the rest it is given
        self.assumed.add(id(variable))
        sound = bool(variable.given) and all(map(self._is_sound, variable.given))
        self.assumed.discard(id(variable))
        return sound

    def _parameter_is_sound(self, parameter: _Parameter) -> bool:
        owner = self.owners.get(id(parameter.function))
        if owner is None or owner.escapes:
            return False
        calls = [call for call in self.calls if self._called(call.func) is owner]
        return bool(calls) and all(
            len(call.args) > parameter.place and self._is_sound(_Expression(call.args[parameter.place]))
            for call in calls
        )

    def _result_is_sound(self, call: Node, place: int) -> bool:
        owner = self._called(call.func)
        functions = [each for each, held in self.owners.items() if held is owner] if owner else []
        values = [values for each in functions for values in self.returns.get(each, [])]
        return bool(values) and all(
            len(each) > place and self._is_sound(_Expression(each[place])) for each in values
        )

    def _called(self, callee: Node) -> _Variable | None:
        name = callee.value if isinstance(callee, astnodes.Index) else callee
        return self.bound.get(id(name)) if isinstance(name, astnodes.Name) else None

    def _visit(self, node: Node) -> None:
        """Bind every name below a node; nodes that open a scope or bind names have their own methods."""
        visit = {
            astnodes.Block: self._visit_block,
            astnodes.LocalAssign: self._visit_local,
            astnodes.Assign: self._visit_assign,
            astnodes.Fornum: self._visit_numeric_loop,
            astnodes.Forin: self._visit_loop,
            astnodes.Call: self._visit_call,
            astnodes.Index: self._visit_index,
            astnodes.Name: self._visit_name,
            astnodes.Return: self._visit_return,
            astnodes.ULengthOP: self._visit_length,
        }.get(type(node))
        if isinstance(node, _FUNCTIONS):
            self._visit_function(node)
        elif visit is not None:
            visit(node)
        else:
            self._visit_all(_children(node))

    def _visit_all(self, nodes: Iterator[Node] | list[Node]) -> None:
        for node in nodes:
            self._visit(node)

    def _visit_block(self, block: Node) -> None:
        self.scopes.append({})
        self._visit_all(block.body)
        self.scopes.pop()

    def _visit_local(self, assign: Node) -> None:
        self._visit_all(assign.values)
        variables = [self._declare(target) for target in assign.targets]
        self._give(variables, assign.values)

    def _visit_assign(self, assign: Node) -> None:
        self._visit_all(assign.values)
        variables = []
        for target in assign.targets:
            if isinstance(target, astnodes.Name):
                variables.append(self._find(target))
                if target.id in ("KEYS", "redis"):
                    self.opaque.append(f"{target.id} is written to")
            else:
                if _is_keys(target):
                    self.opaque.append("KEYS is written to")
                self._visit(target)
                variables.append(_Variable())
        self._give(variables, assign.values)

    def _give(self, variables: list[_Variable], values: list[Node]) -> None:
        for place, variable in enumerate(variables):
            last = len(values) - 1
            if place < last or (place == last and values):
                variable.given.append(_Expression(values[place]))
                self._own(variable, values[place])
            elif values and isinstance(values[last], astnodes.Call):
                variable.given.append(_Expression(values[last], place - last))
            else:
                variable.given.append(_Unknown())

    def _own(self, variable: _Variable, value: Node) -> None:
        """Record which functions are called through a variable: itself, or those of a table in it."""
        held = [each.value for each in value.fields] if isinstance(value, astnodes.Table) else [value]
        for each in held:
            if isinstance(each, _FUNCTIONS):
                self.owners[id(each)] = variable

    def _visit_function(self, function: Node) -> None:
        if isinstance(function, astnodes.LocalFunction):
            self.owners[id(function)] = self._declare(function.name)
        elif isinstance(function, astnodes.Function) and isinstance(function.name, astnodes.Name):
            self.owners[id(function)] = self._find(function.name)
        self.functions.append(function)
        self.scopes.append({})
        for place, parameter in enumerate(function.args):
            if isinstance(parameter, astnodes.Name):
                self._declare(parameter).given.append(_Parameter(function, place))
        self._visit(function.body)
        self.scopes.pop()
        self.functions.pop()

    def _visit_numeric_loop(self, loop: Node) -> None:
        self._visit_all(
            [part for part in (loop.start, loop.stop, loop.step) if isinstance(part, astnodes.Node)]
        )
        self.scopes.append({})
        self._declare(loop.target).given.append(_Unknown())
        self._visit(loop.body)
        self.scopes.pop()

    def _visit_loop(self, loop: Node) -> None:
        self._visit_all(loop.iter)
        self.scopes.append({})
        for place, target in enumerate(loop.targets):
            over_keys = place == 1 and _is_over_keys(loop.iter)
            self._declare(target).given.append(_Expression(_ANY_KEY) if over_keys else _Unknown())
        self._visit(loop.body)
        self.scopes.pop()

    def _visit_call(self, call: Node) -> None:
        self.calls.append(call)
        callee = call.func
        self.callees.add(id(callee))
        if isinstance(callee, astnodes.Index):
            self.indexes.append(callee)
            self._bind_callee(callee.value)
            if callee.notation is not astnodes.IndexNotation.DOT:
                self._visit(callee.idx)
        else:
            self._bind_callee(callee)
        self._visit_all([] if _is_given_keys(call) else call.args)

    def _bind_callee(self, node: Node) -> None:
        if isinstance(node, astnodes.Name):
            self._find(node)
        else:
            self._visit(node)

    def _visit_index(self, index: Node) -> None:
        self.indexes.append(index)
        if not _is_name(index.value, "KEYS") and not _is_name(index.value, "redis"):
            self._visit(index.value)
        if index.notation is not astnodes.IndexNotation.DOT:
            self._visit(index.idx)

    def _visit_name(self, name: Node) -> None:
        """Handle a name that is not called: a function in it may be called from anywhere later."""
        self._find(name).escapes = True
        if name.id in ("KEYS", "redis"):
            self.opaque.append(f"{name.id} is used as a value, so it cannot be followed")

    def _visit_return(self, statement: Node) -> None:
        values = list(statement.values or [])
        if self.functions:
            self.returns.setdefault(id(self.functions[-1]), []).append(values)
        self._visit_all([value for value in values if isinstance(value, astnodes.Node)])

    def _visit_length(self, length: Node) -> None:
        if not _is_name(length.operand, "KEYS"):
            self._visit(length.operand)

    def _declare(self, name: Node) -> _Variable:
        if name.id in ("KEYS", "redis"):
            self.opaque.append(f"{name.id} is declared again")
        variable = self.scopes[-1][name.id] = _Variable()
        self.bound[id(name)] = variable
        return variable

    def _find(self, name: Node) -> _Variable:
        if name.id in OPAQUE:
            self.opaque.append(f"{name.id} hides what the script does")
        for scope in reversed(self.scopes):
            if name.id in scope:
                self.bound[id(name)] = scope[name.id]
                return scope[name.id]
        variable = self.scopes[0][name.id] = _Variable()
        self.bound[id(name)] = variable
        return variable


_ANY_KEY = astnodes.Index(astnodes.Number(1), astnodes.Name("KEYS"), astnodes.IndexNotation.SQUARE)


def _children(node: Node) -> Iterator[Node]:
    for value in vars(node).values():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, astnodes.Node) and not isinstance(child, astnodes.Comment):
                yield child


def _is_name(node: Node, name: str) -> bool:
    return isinstance(node, astnodes.Name) and node.id == name


def _is_keys(node: Node) -> bool:
    return isinstance(node, astnodes.Index) and _is_name(node.value, "KEYS")


def _is_redis_call(node: Node) -> bool:
    return (
        isinstance(node, astnodes.Index)
        and _is_name(node.value, "redis")
        and (_is_name(node.idx, "call") or _is_name(node.idx, "pcall"))
    )


def _is_over_keys(iterators: list[Node]) -> bool:
    return len(iterators) == 1 and _is_given_keys(iterators[0]) and _is_name(iterators[0].func, "ipairs")


def _is_given_keys(node: Node) -> bool:
    """`ipairs(KEYS)` and `unpack(KEYS)`, which give its items and leave it as it is."""
    return (
        isinstance(node, astnodes.Call)
        and (_is_name(node.func, "ipairs") or _is_name(node.func, "unpack"))
        and len(node.args) == 1
        and _is_name(node.args[0], "KEYS")
    )


def _shown(node: Node) -> str:
    return str(ast.to_lua_source(node)).strip()
