// Templates that would run for ever, fill the memory or the stack.
#include <string>

#include "gtest/gtest.h"
#include "runtime/template/test_util.h"
#include "runtime/template/values/budget.h"

namespace trine::jinja {
namespace {

std::string Times(const std::string& text, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += text;
  return out;
}

// Returns "a, a0, a1, ...".
std::string Many(const std::string& name, int n) {
  std::string out = name;
  for (int i = 0; i < n; ++i) out += ", " + name + std::to_string(i);
  return out;
}

// Lower under a sanitizer, because steps take many times as long and later steps find nothing new.
Limits DefaultLimits() {
  Limits limits;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  limits.steps /= 20;
  limits.memory /= 8;
#endif
  return limits;
}

// Expects RESOURCE_EXHAUSTED. The whole test has a time limit.
void ExpectExhausted(const std::string& source, const Limits& limits = DefaultLimits()) {
  RenderOptions options;
  options.limits = limits;
  const auto text = RenderText(source, "{}", options);
  EXPECT_EQ(text.status().code(), absl::StatusCode::kResourceExhausted)
      << text.status() << " of " << source.substr(0, 80);
}

TEST(Hostile, NestedTooDeep) {
  ExpectExhausted("{{ " + Times("(", 100000) + "1" + Times(")", 100000) + " }}");
  ExpectExhausted("{{ " + Times("[", 100000) + " }}");
  ExpectExhausted("{{ " + Times("{'a':", 100000) + Times("}", 100000) + " }}");
  ExpectExhausted("{{ " + Times("not ", 100000) + "1 }}");
  ExpectExhausted("{{ " + Times("-", 100000) + "1 }}");
  ExpectExhausted("{{ 1" + Times(" + 1", 100000) + " }}");
  ExpectExhausted("{{ a" + Times(".a", 100000) + " }}");
  ExpectExhausted("{{ a" + Times("|abs", 100000) + " }}");
  ExpectExhausted("{{ a" + Times("(a", 100000) + " }}");
  ExpectExhausted("{{ 1" + Times(" if 1 else 1", 100000) + " }}");
  ExpectExhausted("{{ 1" + Times(" is odd", 100000) + " }}");
  ExpectExhausted(Times("{% if 1 %}", 100000));
  ExpectExhausted(Times("{% for a in b %}", 100000));
  ExpectExhausted("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
  ExpectExhausted("{% macro a(f) %}{{ f(f) }}{% endmacro %}{{ a(a) }}");
}

TEST(Hostile, ValuesNestedTooDeep) {
  ExpectExhausted(
      "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor "
      "%}");
  ExpectExhausted(
      "{% set ns = namespace(l={}) %}{% for i in range(1000) %}{% set ns.l = {'a': ns.l} %}{% "
      "endfor %}");
  ExpectExhausted("{% set ns = namespace() %}{% set ns.ns = ns %}{{ ns | tojson }}");
  // A chain of namespaces has no limit, but is never walked.
  EXPECT_EQ(Rendered("{% set top = namespace() %}{% set ns = namespace(p=top) %}"
                     "{% for i in range(20000) %}{% set q = namespace() %}{% set ns.p.n = q %}"
                     "{% set ns.p = q %}{% endfor %}ok"),
            "ok");
  EXPECT_EQ(Rendered("{% set ns = namespace() %}{% set ns.ns = ns %}{{ ns.ns.ns == ns }}"), "true");
}

TEST(Hostile, FiltersThatCallFilters) {
  EXPECT_EQ(RenderText("{{ 'a' | map(filter='map') }}").status().code(),
            absl::StatusCode::kInvalidArgument);
  ExpectExhausted("{{ 'a' | map(*('map,' * 5000).split(',')) }}");
  EXPECT_EQ(Rendered("{{ ['a'] | map(filter='upper') | join }}"), "A");
  EXPECT_EQ(Rendered("{{ [0, 1] | select(test='odd') | join }}"), "1");
  EXPECT_EQ(Rendered("{{ [{'a': 1}, {}] | rejectattr(attribute='a', test='defined') }}"), "[{}]");
}

TEST(Hostile, WhatMacrosGatherNestedTooDeep) {
  ExpectExhausted(
      "{% set ns = namespace(v=[]) %}{% macro m() %}{% set ns.v = varargs %}{% endmacro %}"
      "{% for i in range(50000) %}{{ m(ns.v) }}{% endfor %}");
  ExpectExhausted(
      "{% set ns = namespace(v={}) %}{% macro m() %}{% set ns.v = kwargs %}{% endmacro %}"
      "{% for i in range(50000) %}{{ m(a=ns.v) }}{% endfor %}");
}

TEST(Hostile, MethodsHoldTheirObjects) {
  ExpectExhausted(
      "{% set ns = namespace(f=1) %}{% for i in range(100000) %}{% set ns.f = {'a': ns.f}.get %}"
      "{% endfor %}");
}

TEST(Hostile, ManyOfAKind) {
  ExpectExhausted("{% macro m(" + Many("a", 100000) + ") %}{% endmacro %}");
  ExpectExhausted("{{ m(" + Many("a", 100000) + ") }}");
  ExpectExhausted("{% for " + Many("a", 100000) + " in b %}{% endfor %}");
  ExpectExhausted("{% set " + Many("a", 100000) + " = b %}");
  std::string sets;
  for (int i = 0; i < 100000; ++i) sets += "{% set a" + std::to_string(i) + " = 1 %}";
  ExpectExhausted(sets + "{% for i in range(5000000) %}{{ nosuch }}{% endfor %}");
  ExpectExhausted(
      "{% set l = range(1000000) %}{% for i in l %}{% for j in l %}{% break %}{% endfor %}"
      "{% for k in l if k < 0 %}{% endfor %}{% endfor %}");
}

TEST(Hostile, RunsForEver) {
  const std::string loop = "{% for i in range(10000) %}";
  ExpectExhausted(loop + loop + loop + "{% endfor %}{% endfor %}{% endfor %}");
  ExpectExhausted(
      "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}");
  ExpectExhausted("{% set x = 'a' * 10000000 %}" + loop +
                  "{% if 'b' in x %}{% endif %}{% endfor %}");
  ExpectExhausted("{% set x = 'a' * 10000000 %}" + loop +
                  "{% if x == x ~ '' %}{% endif %}{% endfor %}");
  ExpectExhausted(
      "{% set x = ('a' * 2000000) %}{% set y = x ~ 'b' %}{{ (x * 10).split(y) | length }}" + loop +
      "{% if (x * 2).find(y) %}{% endif %}{% endfor %}");
  // Lists that hold the same list twice: 2^100 items for code that walks them.
  const std::string doubled =
      "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(100) %}"
      "{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}";
  ExpectExhausted(doubled + "{{ ns.a == ns.b }}");
  ExpectExhausted(doubled + "{{ ns.a }}");
  ExpectExhausted(doubled + "{{ ns.a | tojson(indent=1000) }}");
  ExpectExhausted(doubled + "{{ [ns.a, ns.b] | unique }}");
  ExpectExhausted("{% set x = 'a' * 1000000 %}{{ (x * 20).strip(x) }}");
  ExpectExhausted("{{ range(3000000) | unique | length }}");
}

TEST(Hostile, EveryByteGoneOverCounts) {
  for (const char* filter :
       {"map(attribute=p)", "join('', p)", "sort(attribute=p)", "selectattr(p)", "rejectattr(p)"}) {
    ExpectExhausted(Words("{% set p = ('.' * 1000) * 10000 %}{{ range(20) | ", filter, " }}"));
  }
  const std::string text = "{% set x = ('x' * 1000) * 10000 %}";
  ExpectExhausted(text + "{% for i in range(100) %}{% set n = x.length %}{% endfor %}");
  ExpectExhausted(text +
                  "{% set ns = namespace(l=[x ~ 'y']) %}{% for i in range(6) %}"
                  "{% set ns.l = ns.l + ns.l %}{% endfor %}{{ (x ~ 'z').startswith(ns.l) }}");
  // Each lookup hashes the name.
  ExpectExhausted("{{ " + Times("a", 100000) + " }}");
  ExpectExhausted(text +
                  "{% macro m() %}{{ kwargs.a }}{% endmacro %}{% set d = {x: 1} %}"
                  "{% for i in range(100) %}{{ m(**d) }}{% endfor %}");
}

TEST(Hostile, KeysOfDictsCount) {
  Limits small;
  small.memory = 40 << 20;
  const std::string start =
      "{% macro m() %}{% set k = kwargs %}{% endmacro %}{% set k = 'k' * 1000000 %}"
      "{% set d = {k: 1} %}{% for i in range(60) %}";
  for (const char* body :
       {"{% set e = {k: 1} %}", "{% set e = d.items() %}", "{% set e = d.keys() %}",
        "{% set e = d | list %}", "{% set e = namespace(d) %}", "{% set e = namespace(**d) %}",
        "{% set e = d | dictsort(true) %}", "{{ m(**d) }}"}) {
    ExpectExhausted(start + body + "{% endfor %}", small);
  }
  RenderOptions options;
  options.limits = small;
  EXPECT_TRUE(RenderText(start + "{% set e = d %}{% endfor %}", "{}", options).ok());
}

TEST(Hostile, CharactersOfLongTexts) {
  const std::string text = "{% set x = ('x' * 1000) * 30000 ~ 'y' %}";
  EXPECT_EQ(Rendered(text + "{{ x[-1] }}{{ x[-3:] }}{{ x[:-3:-1] }}"), "yxxyyx");
  EXPECT_EQ(Rendered("{{ 'aüb€c😀'[1::2] }} {{ 'aüb€c😀'[::-2] }} {{ 'aüb€c😀'[-3:-1] }} "
                     "{{ 'aüb€c😀'[4:1:-1] }} {{ 'aüb€c😀'[-1] }}{{ 'aüb€c😀'[3] }}"),
            "ü€😀 😀€ü €c c€b 😀€");
  ExpectExhausted(text + "{{ x | list }}");
  ExpectExhausted("{{ range(1000000) | tojson(indent=1000) }}");
  Limits small;
  small.memory = 5 << 20;
  ExpectExhausted("{{ strftime_now('%A' * 1000000) }}", small);
}

TEST(Hostile, FillsTheMemory) {
  ExpectExhausted(
      "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% "
      "endfor %}");
  ExpectExhausted(
      "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% "
      "endfor %}");
  ExpectExhausted("{{ 'a' * 9000000000000000000 }}");
  ExpectExhausted("{{ range(9000000000000000000) }}");
  ExpectExhausted("{{ range(-9000000000000000000, 9000000000000000000) }}");
  ExpectExhausted("{{ ('a' * 1000000).replace('', 'b' * 1000000) }}");
  ExpectExhausted("{{ ('a' * 100000) | list | join('b' * 100000) }}");
  ExpectExhausted("{{ ('\n' * 1000000) | indent(1000, true, true) }}");
  ExpectExhausted("{{ ('a,' * 10000000).split(',') }}");
  ExpectExhausted("{% for i in range(1000000) %}" + Times("x", 1000) + "{% endfor %}");
  Limits small;
  small.output = 10;
  ExpectExhausted("{{ 'a' * 11 }}", small);
}

TEST(Hostile, NumbersAtTheirEnds) {
  for (const char* source :
       {"{{ 9223372036854775807 + 1 }}", "{{ -9223372036854775807 - 2 }}",
        "{{ 9223372036854775807 * 2 }}", "{{ 2 ** 63 }}", "{{ 1 // 0 }}", "{{ 1 % 0 }}",
        "{{ 1 / 0 }}", "{{ 1.0 // 0 }}", "{{ 1e }}", "{{ 99999999999999999999 }}",
        "{{ (10.0 ** 300) | int }}", "{{ (-9223372036854775807 - 1) // -1 }}", "{{ [1][::0] }}",
        "{{ 10 ** 400.0 }}"}) {
    EXPECT_EQ(Rendered(source).substr(0, 6), "error:") << source;
  }
  EXPECT_EQ(Rendered("{{ (-9223372036854775807 - 1) % -1 }}"), "0");
  EXPECT_EQ(Rendered("{{ (-9223372036854775807 - 1) % 3 }}"), "1");
  EXPECT_EQ(Rendered("{{ 'abc'[-9223372036854775807:9223372036854775807:9223372036854775807] }}"),
            "a");
  EXPECT_EQ(Rendered("{{ 'abc'[::-9223372036854775807] }}"), "c");
  EXPECT_EQ(Rendered("[{{ [1][9223372036854775807] }}]"), "[]");
  EXPECT_EQ(Rendered("{{ range(9223372036854775806, 9223372036854775807) }}"),
            "[9223372036854775806]");
  EXPECT_EQ(Rendered("{{ range(-9000000000000000000, 9000000000000000000, 6000000000000000000) }}"),
            "[-9000000000000000000, -3000000000000000000, 3000000000000000000]");
  EXPECT_EQ(
      Rendered("{{ range(9000000000000000000, -9000000000000000000, -9000000000000000000) }}"),
      "[9000000000000000000, 0]");
  EXPECT_EQ(Rendered("{{ 'abc'[::-9223372036854775807 - 1] }}"), "c");
  EXPECT_EQ(Rendered("{{ 1 ** 9223372036854775807 }}{{ (-1) ** 9223372036854775807 }}"), "1-1");
}

TEST(Hostile, JsonOfAnyKind) {
  EXPECT_EQ(ParseJson("[1,", "it").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseJson("", "it").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseJson("\"\xFF\"", "it").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseJson(Times("[", 200), "it").status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Rendered("{{ x }}", R"({"x": 18446744073709551615})"), "18446744073709551616.0");
  EXPECT_EQ(Rendered("{{ x }}", R"({"x": {"a": 1, "a": 2}})"), R"({"a": 2})");
}

}  // namespace
}  // namespace trine::jinja
