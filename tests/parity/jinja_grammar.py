"""Random small templates and data, for the comparison with jinja2. Mostly well typed, sometimes not."""

import json

VARIABLES = json.loads(json.dumps({
    "s": "Hello World", "t": "  pad\tded \n", "u": "Grüße 世界 🌍 ß", "e": "", "q": "it's \"q\"\\\n", "csv": "a,b,,c", "m": "ab<b>&",
    "i": 7, "j": -3, "z": 0, "f": 2.5, "g": -0.1, "h": 1e20, "yes": True, "no": False, "nil": None,
    "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "le": [], "mix": [1, "1", 1.0, True, None, [1], {"a": 1}],
    "nested": [[1, 2], [3], []], "pairs": [["k", 1], ["v", 2]],
    "d": {"a": 1, "b": "two", "items": 5, "n": None}, "dd": {"x": {"y": [10, 20]}, "B": 1, "a": 2, "C": 0}, "de": {},
    "msgs": [{"role": "user", "content": "hi", "n": 3}, {"role": "assistant", "content": "yo", "n": 1, "opt": 1},
             {"role": "user", "content": "", "n": 2}],
}, sort_keys=True))

STRINGS = ["s", "t", "u", "e", "q", "csv", "m", "'x'", "'a,b'", "' lead'", "'é\\n'", "\"it's\"", "msgs[0].role", "d.b", "'%s|%d'", "'aXbXc'"]
INTEGERS = ["i", "j", "z", "1", "2", "3", "-1", "10", "msgs|length", "d['a']", "loop.index", "loop.revindex0"]
FLOATS = ["f", "g", "h", "1.5", "0.1", "2.0", "1e3"]
LISTS = ["l", "ls", "le", "mix", "nested", "pairs", "msgs", "[1, 2, 3]", "['x', 'y']", "range(4)", "(1, 'b')", "d|list", "dd.x.y"]
DICTS = ["d", "dd", "de", "{'k': 1, 'j': [2]}", "msgs[0]", "dd.x", "{1: 'one', none: 2}", "dict(a=1, b=s)"]
BOOLEANS = ["yes", "no", "true", "false", "not z", "s is string", "nil is none"]
UNKNOWN = ["nope", "nil", "d.missing", "l[99]", "mix", "mix[3]", "mix[5]", "d.n"]

STRING_CALLS = ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "strip()", "lstrip()", "rstrip()", "strip('ad ')",
                "lstrip('H')", "rstrip('d\\n')", "replace('l', 'L')", "replace('o', '', 1)", "replace('', '-')", "zfill(9)",
                "ljust(12, '.')", "rjust(12)", "center(11, '*')", "removeprefix('Hello')", "removesuffix('World')", "join(ls)",
                "format(1, 'b')"]
STRING_FILTERS = ["upper", "lower", "title", "capitalize", "trim", "trim('a')", "replace('a', 'b')", "string", "indent", "indent(2, true)",
                  "indent('>', blank=true)", "reverse", "center(12)", "truncate(5)", "truncate(5, true, '~', 0)",
                  "default('dflt')", "default('dflt', true)", "tojson", "format(1, 2)", "wordcount", "first", "last"]
LIST_FILTERS = ["list", "reverse|list", "sort", "sort(reverse=true)", "unique|list", "map('string')|list", "map('upper')|list",
                "select|list", "reject('none')|list", "select('string')|list", "select('number')|list", "batch(2)|list",
                "batch(2, 'f')|list", "slice(2)|list", "map('length')|list", "reject('equalto', 1)|list", "select('in', [1, 'a'])|list",
                "sort(case_sensitive=true)", "selectattr('n')|list", "map('default', 'z')|list"]
MESSAGE_FILTERS = ["selectattr('role', 'equalto', 'user')|list", "rejectattr('opt', 'defined')|list", "map(attribute='content')|list",
                   "map(attribute='opt', default=0)|list", "sort(attribute='n')", "sort(attribute='role,n')", "selectattr('n', 'gt', 1)|list",
                   "unique(attribute='role')|list", "map(attribute='content')|join('+')", "sum(attribute='n')", "max(attribute='n')"]
TESTS = ["defined", "undefined", "none", "string", "mapping", "sequence", "iterable", "number", "integer", "float", "boolean", "true",
         "false", "odd", "even", "divisibleby(2)", "divisibleby 3", "eq(1)", "equalto('A')", "ne 1", "gt(1)", "lt(2)", "ge(1)", "le(1)",
         "in([1, 'b'])", "lower", "upper", "callable", "sameas(none)", "sameas true"]
ROUNDINGS = ["", "1", "2", "1, 'ceil'", "0, 'floor'"]


class Grammar:
    def __init__(self, rng):
        self.rng = rng
        self.names = []
        self.loops = 0
        self.macros = []

    def pick(self, *choices):
        choice = self.rng.choice(choices)
        return choice() if callable(choice) else choice

    def any(self, depth):
        kinds = [self.string, self.string, self.integer, self.number, self.list, self.dict, self.boolean, self.unknown]
        return self.rng.choice(kinds)(depth)

    def typed(self, kind, depth):
        """An expression of this type, or occasionally of any type."""
        return self.any(depth) if self.rng.random() < 0.02 else kind(depth)

    def unknown(self, depth):
        if self.names and self.rng.random() < 0.6:
            return self.rng.choice(self.names)
        return self.rng.choice(UNKNOWN)

    def string(self, depth):
        if depth <= 0:
            return self.rng.choice(STRINGS)
        string, integer, anything = (lambda k=k: self.typed(k, depth - 1) for k in (self.string, self.integer, self.any))
        choice = self.rng.randrange(11)
        if choice == 0:
            return f"({string()} + {string()})"
        if choice == 1:
            return f"({anything()} ~ {anything()})"
        if choice == 2:
            return f"({string()}).{self.rng.choice(STRING_CALLS)}"
        if choice == 3:
            return f"({string()})|{self.rng.choice(STRING_FILTERS)}"
        if choice == 4:
            return f"({self.string(depth - 1)}){self.slice(depth)}"
        if choice == 5:
            return f"({string()} if {self.boolean(depth - 1)} else {anything()})"
        if choice == 6:
            return f"({self.typed(self.list, depth - 1)})|join({self.pick('', repr(', '), string)})"
        if choice == 7:
            return f"({string()} * {self.rng.choice(['0', '2', '3', 'z', 'j'])})"
        if choice == 8:
            return f"({anything()})|{self.pick('string', 'tojson', 'tojson(indent=2)', 'tojson(sort_keys=true)', 'tojson(ensure_ascii=true)')}"
        if choice == 9 and self.macros:
            return f"{self.rng.choice(self.macros)}({anything()})"
        return f"({string()}).split({self.pick('', repr(','), repr('l'))})[{self.pick('0', '-1', '1', integer)}]"

    def slice(self, depth):
        part = lambda: self.pick("", "", "0", "1", "2", "-1", "-2", "10", lambda: self.typed(self.integer, 0))
        return self.pick(lambda: f"[{part()}:{part()}]", lambda: f"[{part()}:{part()}:{self.pick('', '1', '2', '-1', '-2')}]",
                         lambda: f"[{self.pick('0', '1', '-1', 'i')}]")

    def integer(self, depth):
        if depth <= 0:
            return self.rng.choice(INTEGERS)
        integer, string = (lambda k=k: self.typed(k, depth - 1) for k in (self.integer, self.string))
        return self.pick(
            lambda: f"({integer()} {self.rng.choice(['+', '-', '*', '//', '%'])} {integer()})", lambda: f"({string()})|length",
            lambda: f"({self.typed(self.list, depth - 1)})|{self.rng.choice(['length', 'count', 'sum', 'max', 'min', 'first', 'last'])}",
            lambda: f"({string()}).{self.rng.choice(['find', 'count', 'rfind', 'index'])}({string()})", lambda: f"-{integer()}",
            lambda: f"({self.any(depth - 1)})|int", lambda: f"({string()})|int(9, 16)", lambda: f"({integer()})|abs",
            lambda: f"({integer()} ** {self.rng.choice(['0', '2', '3'])})", lambda: f"({self.list(depth - 1)}).index({integer()})")

    def number(self, depth):
        if depth <= 0:
            return self.rng.choice(FLOATS + INTEGERS)
        number = lambda: self.typed(self.number, depth - 1)
        return self.pick(lambda: f"({number()} {self.rng.choice(['+', '-', '*', '/', '//', '%'])} {number()})",
                         lambda: f"({number()})|round({self.rng.choice(ROUNDINGS)})",
                         lambda: f"({self.any(depth - 1)})|float", lambda: f"({number()})|abs", lambda: f"({number()} ** 2)",
                         lambda: f"'%{self.pick('', '5', '-6', '05', '+')}{self.pick('d', '.2f', 's', 'r', 'g', 'x', '.1e')}' % {number()}")

    def list(self, depth):
        if depth <= 0:
            return self.rng.choice(LISTS)
        some = lambda: self.typed(self.list, depth - 1)
        anything = lambda: self.any(depth - 1)
        return self.pick(
            lambda: f"[{', '.join(anything() for _ in range(self.rng.randrange(4)))}]", lambda: f"({some()})|{self.rng.choice(LIST_FILTERS)}",
            lambda: f"msgs|{self.rng.choice(MESSAGE_FILTERS)}", lambda: f"({self.list(depth - 1)}){self.slice(depth)}", lambda: f"({some()} + {some()})",
            lambda: f"({self.typed(self.dict, depth - 1)}).{self.rng.choice(['keys', 'values', 'items'])}()|list",
            lambda: f"({self.typed(self.dict, depth - 1)})|{self.pick('items|list', 'dictsort', 'dictsort(by=' + repr('value') + ')', 'list')}",
            lambda: f"({self.typed(self.string, depth - 1)}).{self.pick('split()', 'split(' + repr('l') + ', 1)', 'rsplit(None, 1)', 'splitlines()', 'splitlines(true)', 'partition(' + repr(',') + ')')}",
            lambda: f"({self.typed(self.string, depth - 1)})|list", lambda: f"range({self.pick('3', '1, 5', '5, 0, -2', 'i')})|list",
            lambda: f"({some()} * {self.rng.choice(['0', '2'])})")

    def dict(self, depth):
        if depth <= 0:
            return self.rng.choice(DICTS)
        anything = lambda: self.any(depth - 1)
        return self.pick(lambda: f"{{{', '.join(f'{self.pick(self.string(0), self.integer(0))}: {anything()}' for _ in range(self.rng.randrange(4)))}}}",
                         lambda: f"dict({self.typed(self.dict, depth - 1)}, z={anything()})",
                         lambda: f"({self.typed(self.dict, depth - 1)} or {self.dict(0)})")

    def boolean(self, depth):
        if depth <= 0:
            return self.rng.choice(BOOLEANS)
        anything = lambda: self.any(depth - 1)
        kind = self.rng.choice([self.string, self.number, self.list, self.integer])
        same = lambda: self.typed(kind, depth - 1)
        return self.pick(
            lambda: f"({same()} {self.rng.choice(['==', '!=', '<', '<=', '>', '>='])} {same()})", lambda: f"({anything()} == {anything()})",
            lambda: f"({anything()} is {self.pick('', 'not ')}{self.rng.choice(TESTS)})", lambda: f"(not {anything()})",
            lambda: f"({anything()} {self.rng.choice(['and', 'or'])} {anything()})",
            lambda: f"({anything()} {self.rng.choice(['in', 'not in'])} {self.pick(lambda: self.list(depth - 1), lambda: self.dict(depth - 1))})",
            lambda: f"({self.string(depth - 1)} in {self.string(depth - 1)})", lambda: f"({same()} < {same()} <= {same()})",
            lambda: f"({self.string(depth - 1)}).{self.pick('startswith', 'endswith')}({self.pick(repr('H'), '(' + repr('a') + ', ' + repr('  ') + ')', lambda: self.string(0))})",
            lambda: f"({self.string(depth - 1)}).{self.pick('isdigit', 'isalpha', 'isspace', 'isupper', 'islower', 'isalnum')}()")

    def output(self, depth):
        space = lambda: self.rng.choice(["", "-", "", ""])
        kind = self.rng.choice([self.any, self.any, self.postfix])
        return f"{{{{{space()} {kind(depth)} {space()}}}}}"

    def postfix(self, depth):
        return self.pick(lambda: f"{self.any(depth)}", lambda: f"({self.dict(depth - 1)}).{self.rng.choice(['a', 'b', 'x', 'items', 'zz', 'role'])}",
                         lambda: f"({self.dict(depth - 1)})[{self.any(0)}]", lambda: f"({self.dict(depth - 1)}).get({self.any(0)}, {self.any(0)})",
                         lambda: f"({self.any(depth - 1)})|default({self.any(0)}, {self.boolean(0)})",
                         lambda: f"({self.any(depth - 1)} if {self.boolean(depth - 1)})", lambda: f"ns.{self.rng.choice(['a', 'b', 'c'])}",
                         lambda: f"({self.any(depth - 1)})|{self.rng.choice(['e', 'safe', 'escape|e', 'safe|escape'])}",
                         lambda: f"(({self.string(0)})|e) + ({self.string(0)})")

    def text(self):
        return self.rng.choice(["a", " ", "\n", "  \n", " text ", "\n\n", "\t", "é", "{", "}", "%", "# ", "\r\n"])

    def tag(self, content):
        sign = lambda: self.rng.choice(["", "", "-", "", "+"])
        return f"{{%{sign()} {content} {sign()}%}}"

    def block(self, depth):
        size = self.rng.randint(1, 3)
        return "".join(self.statement(depth) for _ in range(size))

    def scoped(self, depth, *names):
        kept, self.names = self.names, self.names + list(names)
        body = self.block(depth)
        self.names = kept
        return body

    def statement(self, depth):
        if depth <= 0 or self.rng.random() < 0.3:
            return self.text() + self.pick(lambda: self.output(1), lambda: self.output(2), "", "{# note -#}", "{#- note #}", "{# note #}")
        blocks = [self.if_block, self.for_block, self.for_block, self.set, self.set, self.set_block, self.macro, self.filter_block,
                  self.with_block, self.raw, self.namespace, self.generation, lambda _: self.output(2) + self.text()]
        return self.rng.choice(blocks)(depth)

    def if_block(self, depth):
        branches = self.tag(f"if {self.any(1)}") + self.block(depth - 1)
        if self.rng.random() < 0.3:
            branches += self.tag(f"elif {self.boolean(1)}") + self.block(depth - 1)
        if self.rng.random() < 0.5:
            branches += self.tag("else") + self.block(depth - 1)
        return branches + self.tag("endif")

    def for_block(self, depth):
        target, iterable, names = self.pick(("x", self.typed(self.list, 1), ["x"]), ("k, v", "d.items()", ["k", "v"]),
                                            ("k, v", "pairs", ["k", "v"]), ("c", self.string(1), ["c"]), ("m", "msgs", ["m", "m.content", "m.role"]),
                                            ("x", self.pick("msgs|reverse", "ls|map('upper')", "nope", "d", "range(3)"), ["x"]))
        condition = self.pick("", "", f" if {self.boolean(1)}", f" if {names[0]}", f" if {names[0]} != 1")
        self.loops += 1
        inside = names + self.pick([], ["loop.index", "loop.first", "loop.last"], ["loop.index0", "loop.length", "loop.revindex"],
                                   ["loop.previtem", "loop.nextitem", "loop.cycle('o', 'e')", "loop.changed(" + names[0] + ")"])
        body = self.scoped(depth - 1, *inside)
        if self.rng.random() < 0.2:
            body += self.tag(f"if {self.boolean(1)}") + self.tag(self.pick("break", "continue")) + self.tag("endif") + self.text()
        self.loops -= 1
        otherwise = self.tag("else") + self.block(depth - 1) if self.rng.random() < 0.25 else ""
        return self.tag(f"for {target} in {iterable}{condition}") + body + otherwise + self.tag("endfor")

    def new_name(self):
        name = self.rng.choice(["v1", "v2", "v3"])
        self.names.append(name)
        return name

    def set(self, depth):
        if self.rng.random() < 0.15:
            value = self.pick("(1, 2)", "l[:2]", "pairs[0]", "'ab'", "l")
            return self.tag(f"set {self.new_name()}, {self.new_name()} = {value}")
        value = self.any(2)
        return self.tag(f"set {self.new_name()} = {value}")

    def set_block(self, depth):
        body = self.block(depth - 1)
        return self.tag(f"set {self.new_name()}{self.pick('', '|upper', ' | trim | length')}") + body + self.tag("endset")

    def namespace(self, depth):
        if self.rng.random() < 0.4:
            return self.tag(f"set ns = namespace(a={self.any(1)}, b={self.any(0)})")
        return self.tag(f"set ns.{self.rng.choice(['a', 'b', 'c'])} = {self.pick(lambda: self.any(1), 'ns.a ~ 1')}")

    def macro(self, depth):
        name = f"mac{len(self.macros)}"
        body = self.scoped(depth - 1, "p", "o")
        self.macros.append(name)
        call = f"{{{{ {name}({self.any(1)}{self.pick('', ', ' + self.any(0), ', o=' + self.any(0))}) }}}}"
        return self.tag(f"macro {name}(p, o={self.any(0)})") + body + self.tag("endmacro") + call

    def filter_block(self, depth):
        return self.tag(f"filter {self.pick('upper', 'trim', 'replace(' + repr('a') + ', ' + repr('b') + ')', 'indent', 'title|trim')}") + self.block(depth - 1) + self.tag("endfilter")

    def with_block(self, depth):
        return self.tag(f"with w = {self.any(1)}") + self.scoped(depth - 1, "w") + self.tag("endwith")

    def generation(self, depth):
        return self.tag("generation") + self.block(depth - 1) + self.tag("endgeneration")

    def raw(self, depth):
        return self.tag("raw").replace("+%}", "%}") + self.text() + "{{ not }} {% run %}" + self.text() + self.tag("endraw")

    def template(self):
        start = self.tag("set ns = namespace(a=1, b='n')") if self.rng.random() < 0.5 else ""
        return start + self.block(3)
