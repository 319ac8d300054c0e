"""Writes src/jinja/testdata/golden.json: small templates for every construct, with jinja2's output.

Usage: python tests/parity/make_jinja_golden.py > src/jinja/testdata/golden.json
"""

import copy
import json

import transformers.utils.chat_template_utils as reference

VARIABLES = {
    "s": "Hello World", "u": "Grüße 世界 🌍", "e": "", "n": 7, "f": 2.5, "yes": True, "nil": None, "l": [3, 1, 2], "ls": ["b", "A", "c"],
    "d": {"a": 1, "b": "two", "items": 5}, "nested": [[1, 2], [3, 4]], "lines": "a\nb\r\nc\n\nd",
    "msgs": [{"role": "user", "content": "hi", "n": 3}, {"role": "assistant", "content": "yo", "n": 1, "opt": 1}],
}

TEMPLATES = {
    "white space": [
        "a\n  {% if yes %}\n b \n  {% endif %}\nc\n", "a {%- if yes -%} b {%- endif -%} c", "a\n  {%+ if yes %}b{% endif +%}\nc", "{{ 1 }}\n{{ 2 }}\n\n",
        "a  {{- s -}}  b", "  {# note #}\nb", " {#- note -#} b", "a {#+ x +#}\nb", "{% raw %} {{ x }}{% endraw %}\nb", "a {%- raw -%} {{ x }} {%- endraw -%} b",
        "  {% raw %}\nx  {% endraw %}\ny", "x  {% set a = 1 %}\n{{ a }}", "\r\na\rb\r\n", "{{ '}}' }}{{ {'a': {'b': 1}} }}", "a{% if yes %}\n\n{% endif %}b",
        "{{ 1 }}  {% if yes %}x{% endif %}", "{% if yes %}\n  {% if yes %}\n x\n  {% endif %}\n{% endif %}\ny", "{{-1}}", "{ {% if yes %}{ {{ 1 }} }{% endif %} }",
        "{##}a{#-#} b", "\u2003{%- if yes %}x{% endif -%}\u00a0 y", "{%if yes%}x{%endif%}", "{% if yes: %}x{% endif %}", ""],
    "literals": [
        "{{ 1 }} {{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1.5 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 00 }}", "{{ 'a\\n\\t\\'\\\\\\x41\\u00e9\\101\\q' }}", "{{ \"it's\" 'x' }}",
        "{{ [1, 'a', none, true, 2.0] }} {{ (1,) }} {{ () }} {{ (1, 2) }} {{ {'a': 1, 2: [], none: ()} }}", "{{ True }} {{ False }} {{ None }}", "{{ 'it\\'s \"q\"' }} {{ ['it\\'s', 'a\"b', 'é\\n\\x00\\u200b'] }}",
        "{{ 1, 2 }}", "{{ {1: 'a', 1.0: 'b', true: 'c'} }}", "{{ [1, 2,] }} {{ {'a': 1,} }}", "{{ 1.0 }} {{ 1e16 }} {{ 1e15 }} {{ 1e-5 }} {{ 0.0001 }} {{ 123456789.125 }} {{ 5e-324 }} {{ -0.0 }}"],
    "operators": [
        "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % -3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 ** 3 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }}", "{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }} {{ 1 + 0.5 }} {{ 2 * 1.5 }}",
        "{{ 'a' + 'b' }} {{ 'a' * 3 }} {{ 3 * 'ab' }} {{ [1] + [2] }} {{ [1, 2] * 2 }} {{ (1,) + (2,) }}", "{{ 1 ~ 'a' ~ none ~ true ~ nope }}", "{{ true + true }} {{ -true }} {{ +n }}", "{{ 1 / 0 }}", "{{ 1 % 0 }}", "{{ 1 + 'a' }}", "{{ 'a' + 1 }}", "{{ [1] + (2,) }}", "{{ -s }}",
        "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' == 1 }} {{ none == nope }} {{ nope == missing }}", "{{ 1 < 'a' }}", "{{ none < 1 }}", "{{ nope < 1 }}",
        "{{ 1 in [1] }} {{ 'ell' in s }} {{ 'a' in d }} {{ 1 not in l }} {{ nope in [1] }}", "{{ 1 in 5 }}", "{{ 1 in s }}", "{{ not yes }} {{ not e }} {{ not not l }}", "{{ e or 'x' }} {{ s and n }} {{ nil and 1 }} {{ 0 or none }}", "{{ 'a' if yes else 'b' }} {{ 'a' if e }}|{{ 1 if e else 2 if yes else 3 }}", "{{ n.x if no }}",
        "{{ '%s is %d of %5.2f%%' % ('a', 3, 2.5) }} {{ '%(a)s' % d }} {{ '%r' % 'x' }} {{ '%05d|%-4s|%+d|%x' % (42, 'a', 5, 255) }}", "{{ '%d' % 'x' }}", "{{ '%s %s' % 'x' }}", "{{ 'x' % 1 }}", "{{ 'a' 'b' ~ 1 + 2 }}", "{{ 1 + 2 ~ 3 * 2 }}"],
    "access": [
        "{{ d.a }} {{ d['a'] }} {{ d.nope }}|{{ d['items'] }} {{ l[0] }} {{ l[-1] }} {{ l[9] }}| {{ s[0] }} {{ u[-1] }} {{ u[6] }}", "{{ d.items() | list }}", "{{ nope.x }}", "{{ nope['x'] }}", "{{ d.nope.x }}", "{{ none.x }}|{{ n.x }}|{{ s.x }}", "{{ l['a'] }}|{{ l[1.0] }}|{{ l[true] }}",
        "{{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[::2] }} {{ l[5:] }} {{ l[-2:][0] }} {{ s[2:5] }} {{ u[::-1] }} {{ u[1:8:2] }} {{ u[-3:] }} {{ (1, 2, 3)[1:] }}", "{{ s[::0] }}", "{{ nil[1:] }}", "{{ d[1:] }}", "{{ s['upper']() }} {{ msgs.0.role }} {{ l.1 }}", "{{ l.append(1) }}", "{{ d.update({}) }}", "{{ l.append is defined }}", "{{ s.__class__ }}|{{ d.__x }}", "{{ d.get('a') }} {{ d.get('z') }} {{ d.get('z', 1) }} {{ d.keys() }} {{ d.values() }} {{ d.items() }}", "{{ d.get([]) }}", "{{ d[[]] }}|", "{{ l.index(2) }} {{ l.count(1) }}", "{{ l.index(9) }}", "{{ s() }}", "{{ nope() }}", "{{ s.upper(1) }}"],
    "strings": [
        "{{ s.upper() }} {{ s.lower() }} {{ 'hELLO wORLD'.capitalize() }} {{ \"they're x\".title() }} {{ s.swapcase() }} {{ 'ß ŉ'.upper() }} {{ 'ΑΣ ΣΑ'.lower() }} {{ 'ǆ'.title() }} {{ 'İ'.lower() }}", "[{{ '  a '.strip() }}] [{{ '\u00a0\u2003a\x1c'.strip() }}] [{{ 'xyax'.strip('yx') }}] [{{ '  a '.lstrip() }}] [{{ 'éaé'.rstrip('é') }}]",
        "{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'a b  c'.rsplit(None, 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a b c '.split(maxsplit=1) }}", "{{ 'a'.split('') }}", "{{ lines.splitlines() }} {{ lines.splitlines(true) }}", "{{ s.startswith('He') }} {{ s.endswith(('x', 'ld')) }} {{ s.startswith('e', 1) }} {{ s.endswith('o', 0, 5) }}", "{{ s.replace('l', 'L') }} {{ s.replace('l', '', 1) }} {{ 'ab'.replace('', '-') }} {{ 'aé'.replace('', '-', 2) }}",
        "{{ s.find('o') }} {{ s.find('z') }} {{ u.find('世') }} {{ s.rfind('o') }} {{ s.count('l') }} {{ s.find('o', 5) }} {{ s.index('W') }} {{ 'aé'.count('') }}", "{{ s.index('z') }}", "{{ ','.join(ls) }} {{ '-'.join('abc') }} {{ ''.join([]) }}", "{{ ','.join(l) }}", "{{ 'a'.ljust(3, '.') }}{{ 'a'.rjust(3) }}{{ 'é'.center(4, '*') }}{{ 'ab'.center(5, '*') }}{{ '-7'.zfill(4) }}", "{{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'x'.partition('-') }} {{ 'x'.rpartition('-') }}",
        "{{ 'prefix'.removeprefix('pre') }} {{ 'file.txt'.removesuffix('.txt') }}", "{{ '{} {x} {!r} {{}} {y!s}'.format('a', 'b', x=1, y='c') }}{{ '{1}{0}'.format(1, 2) }}", "{{ '{} {0}'.format(1) }}", "{{ '{}'.format() }}", "{{ '12'.isdigit() }} {{ 'a1'.isalpha() }} {{ 'a1'.isalnum() }} {{ ' '.isspace() }} {{ ''.isalpha() }} {{ 'AB'.isupper() }} {{ '世'.isalpha() }}"],
    "statements": [
        "{% if n > 5 %}big{% elif n > 2 %}mid{% else %}small{% endif %}", "{% for x in l %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ ',' if not loop.last }}{% endfor %}", "{% for x in l %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }}{{ loop.depth }} {% endfor %}",
        "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for (a, b), i in [[[1, 2], 3]] %}{{ a }}{{ b }}{{ i }}{% endfor %}", "{% for a, b in l %}{% endfor %}", "{% for a, b in ['abc'] %}{% endfor %}", "{% for x in [] %}a{% else %}none{% endfor %}", "{% for x in nope %}a{% else %}none{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for c in u %}{{ c }}.{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}",
        "{% for x in l if x > 1 %}{{ loop.index }}{{ x }}{{ loop.length }}{% endfor %}", "{% for x in l if x > 9 %}{% else %}empty{% endfor %}", "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% if loop.last %}!{% endif %}{% endfor %}", "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in [1] %}{% continue %}{% else %}e{% endfor %}", "{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}", "{% for x in l %}{{ loop.changed(x > 1) }}{% endfor %}",
        "{% set x = 1 %}{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}", "{% set ns = namespace(x=0) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns['x'] }}{{ ns.nope }}", "{% set d.a = 1 %}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = [1] %}", "{% set x %}a{{ n }}b{% endset %}{{ x }}|{{ x|length }}", "{% set x | upper %}abc{% endset %}{{ x }}", "{% if yes %}{% set x = 5 %}{% endif %}{{ x }}",
        "{% macro m(a, b='d', c=none) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, c=2) }}{{ m() }}{{ m(b=3, a=4) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}", "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{% set g = 1 %}{% macro m() %}{{ g }}{% endmacro %}{% set g = 2 %}{{ m() }}", "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(1, **{'b': 3}) }}", "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(4) }}",
        "{% filter upper | replace('B', '-') %}abc{% endfilter %}", "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% generation %}{% set q = 1 %}x{{ q }}{% endgeneration %}{{ q }}", "{% for m in msgs %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}", "{{ raise_exception('no ' ~ n) }}", "{% if no %}{{ raise_exception('x') }}{% endif %}ok", "{{ range(3) }} {{ range(1, 7, 2)|list }} {{ range(3, 0, -1)|list }} {{ range(0)|list }}", "{{ range(100001) }}", "{{ range(1, 2, 0) }}", "{{ dict(a=1, b=2) }} {{ dict(d, z=0) }} {{ dict([['k', 1]]) }}", "{{ nope }}|{{ nope is defined }}|{{ nope|length }}|{{ nope ~ 'x' }}"],
    "filters": [
        "{{ ' a '|trim }}{{ 'xax'|trim('x') }} {{ none|trim }} {{ s|upper }} {{ s|lower }} {{ 'aB c'|capitalize }} {{ \"they're a-b (c\"|title }} {{ 12|string|length }}", "{{ nope|default('x') }} {{ e|default('x') }} {{ e|d('x', true) }} {{ nope|default }}", "{{ s|length }} {{ u|count }} {{ d|length }} {{ l|length }}", "{{ 5|length }}", "{{ l|select|length }}", "{{ ls|join(', ') }} {{ l|join }} {{ msgs|join('+', attribute='role') }} {{ 'abc'|join('-') }}", "{{ 'a b a'|replace('a', 'x') }} {{ 'aaa'|replace('a', 'b', 2) }} {{ 112|replace(1, 3) }}",
        "{{ l|first }} {{ l|last }} {{ s|first }} {{ s|last }} {{ []|first }}| {{ d|first }}", "{{ l|map('string')|list }} {{ msgs|map(attribute='content')|list }} {{ msgs|map(attribute='opt', default=0)|list }} {{ nested|map('first')|list }} {{ nested|map(attribute='0')|list }} {{ nested|map('join', '-')|list }}", "{{ l|select('gt', 1)|list }} {{ l|reject('odd')|list }} {{ [0, 1, '']|select|list }} {{ [0, 1]|reject|list }}", "{{ msgs|selectattr('role', 'equalto', 'user')|map(attribute='content')|first }} {{ msgs|rejectattr('opt')|list|length }} {{ msgs|selectattr('opt', 'defined')|list|length }}", "{{ d|items|list }} {{ nope|items|list }}", "{{ 5|items|list }}", "{{ d|dictsort }} {{ {'b': 1, 'A': 2}|dictsort(true) }} {{ {'b': 1, 'a': 2}|dictsort(by='value', reverse=true) }}",
        "{{ l|sort }} {{ ls|sort }} {{ ls|sort(case_sensitive=true) }} {{ l|sort(reverse=true) }} {{ msgs|sort(attribute='n')|map(attribute='n')|list }}", "{{ [1, 'a']|sort }}", "{{ [1, 2, 1, 'a', 'A']|unique|list }}", "{{ l|reverse|list }} {{ s|reverse }}", "{{ l|list }} {{ 'ab'|list }} {{ d|list }}", "{{ '12'|int }} {{ '12.7'|int }} {{ 'x'|int }} {{ 'x'|int(5) }} {{ '0x1f'|int(0, 16) }} {{ 2.9|int }} {{ -2.9|int }} {{ ' 4_2 '|int }}", "{{ '1.5'|float }} {{ 'x'|float }} {{ 3|float }} {{ 'inf'|float }}", "{{ -3|abs }} {{ -2.5|abs }} {{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 2.1|round(method='ceil') }} {{ 2.18|round(1, 'floor') }} {{ 7|round }}",
        "{{ l|min }} {{ l|max }} {{ ls|min }} {{ []|max }}| {{ l|sum }} {{ msgs|sum(attribute='n') }} {{ l|sum(start=10) }}", "{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb'|indent(2, true) }}|{{ 'a\n\nb'|indent('> ', blank=true) }}", "{{ '<a>&\"'|e }} {{ '<a>'|safe }} {{ ('<a>'|safe) + '<b>' }} {{ '<a>'|e|e }}", "{{ d|tojson }} {{ [1.0, none, true, 'é\"\\n\\u2028\\x01']|tojson }} {{ 'é🌍'|tojson(ensure_ascii=true) }}", "{{ {'b': [1, {}], 'a': []}|tojson(indent=2) }} {{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }} {{ [1, 2]|tojson(separators=(',', ':')) }} {{ {1: 2, none: 3, true: 4}|tojson }}", "{{ nope|tojson }}", "{{ range(2)|tojson }}", "{{ l|batch(2)|list }} {{ l|batch(2, 0)|list }} {{ l|slice(2)|list }} {{ l|slice(2, 'x')|list }}", "{{ 'foo bar baz qux'|truncate(9) }} {{ 'foo bar baz qux'|truncate(9, true) }} {{ 'a b'|wordcount }} [{{ 'ab'|center(6) }}] {{ '%s-%s'|format(1, 'a') }}"],
    "tests": [
        "{{ n is defined }} {{ nope is undefined }} {{ nil is none }} {{ s is string }} {{ d is mapping }} {{ l is sequence }} {{ s is iterable }} {{ 5 is iterable }} {{ d is sequence }}", "{{ 1 is number }} {{ true is number }} {{ 1.5 is float }} {{ 1 is integer }} {{ true is integer }} {{ true is boolean }} {{ true is true }} {{ 1 is true }} {{ false is false }}", "{{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 1 is eq 1 }} {{ 1 is equalto(2) }} {{ 1 is ne 2 }} {{ 2 is gt 1 }} {{ 2 is lessthan(1) }} {{ 2 is ge 2 }} {{ 'a' is in ls }} {{ 'b' is in(ls) }}", "{{ 'abc' is lower }} {{ 'ABC' is upper }} {{ range is callable }} {{ none is sameas none }} {{ l is not string and yes }}", "{{ 1 is not defined }} {{ not n is string }} {{ n is not none }}", "{{ 'x' is odd }}", "{{ 'upper' is filter }} {{ 'odd' is test }}"],
}


def outcome(environment, template):
    try:
        return {"rendered": environment.from_string(template).render(**copy.deepcopy(VARIABLES))}
    except Exception:  # templates can raise any exception
        return {"fails": True}


def main():
    environment = reference._compile_jinja_template("").environment
    cases = [{"group": group, "template": template} | outcome(environment, template)
             for group, templates in TEMPLATES.items() for template in templates]
    print(json.dumps({"variables": VARIABLES, "cases": cases}, indent=1, ensure_ascii=True))


if __name__ == "__main__":
    main()
