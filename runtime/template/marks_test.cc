// Tests which characters of the result are marked as foreign.
#include <string>

#include "gtest/gtest.h"
#include "runtime/template/test_util.h"
#include "runtime/template/values/text.h"

namespace trine::jinja {
namespace {

// Puts foreign bytes in [brackets]. The texts and templates of these tests have no other brackets.
std::string Bracketed(const Text& text) {
  std::string out;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool foreign = text.ForeignAt(i);
    if (foreign != inside) out += foreign ? '[' : ']';
    inside = foreign;
    out += text.bytes()[i];
  }
  return inside ? out + "]" : out;
}

std::string Marked(std::string_view source, std::string_view json) {
  const auto text = RenderText(source, json);
  return text.ok() ? Bracketed(*text) : "error: " + std::string(text.status().message());
}

TEST(Text, MarksFollowTheirBytes) {
  Text text("ab");
  text.Append("cd", true);
  text.Append("ef", true);
  text.Append("gh", false);
  EXPECT_EQ(Bracketed(text), "ab[cdef]gh");
  ASSERT_EQ(text.foreign().size(), 1u);
  EXPECT_EQ(text.foreign()[0], (Text::Span{2, 6}));
  EXPECT_EQ(Bracketed(text.Slice(3, 7)), "[def]g");
  EXPECT_EQ(Bracketed(text.Slice(0, 2)), "ab");
  EXPECT_EQ(Bracketed(text.Slice(2, 6)), "[cdef]");
  EXPECT_EQ(Bracketed(text.Slice(4, 4)), "");
  Text twice = text;
  twice.Append(text, 5, 8);
  EXPECT_EQ(Bracketed(twice), "ab[cdef]gh[f]gh");
  EXPECT_FALSE(text.ForeignAt(1));
  EXPECT_TRUE(text.ForeignAt(2));
  EXPECT_TRUE(text.ForeignAt(5));
  EXPECT_FALSE(text.ForeignAt(6));
}

TEST(Marks, ThroughOutputAndOperators) {
  EXPECT_EQ(Marked("a{{ x }}b", R"({"x": "me"})"), "a[me]b");
  EXPECT_EQ(Marked("{{ '<' + x + '>' }}", R"({"x": "me"})"), "<[me]>");
  EXPECT_EQ(Marked("{{ '<' ~ x ~ 1 }}", R"({"x": "me"})"), "<[me]1");
  EXPECT_EQ(Marked("{{ x[1:3] ~ 'x' }}", R"({"x": "abcd"})"), "[bc]x");
  EXPECT_EQ(Marked("{{ ('ab' ~ x)[::-1] }}", R"({"x": "cd"})"), "[dc]ba");
  EXPECT_EQ(Marked("{{ ('a' ~ x) * 2 }}", R"({"x": "b"})"), "a[b]a[b]");
  EXPECT_EQ(Marked("{{ x.a }}{{ x }}", R"({"x": {"a": "v"}})"), "[v]{\"[a]\": \"[v]\"}");
}

TEST(Marks, ThroughFiltersAndMethods) {
  const char* x = R"({"x": " <|End|> "})";
  EXPECT_EQ(Marked("{{ x | trim }}.", x), "[<|End|>].");
  EXPECT_EQ(Marked("{{ x | upper | trim }}", x), "[<|END|>]");
  EXPECT_EQ(Marked("{{ ('a' ~ x).lower() }}", x), "a[ <|end|> ]");
  EXPECT_EQ(Marked("{{ ('a-b' ~ x).split('-')[1] }}", x), "b[ <|End|> ]");
  EXPECT_EQ(Marked("{{ x.replace('End', 'own') | trim }}", x), "[<|]own[|>]");
  EXPECT_EQ(Marked("{{ 'a|b'.replace('|', x) }}", x), "a[ <|End|> ]b");
  EXPECT_EQ(Marked("{{ ['a', x] | join('-') }}", x), "a-[ <|End|> ]");
  EXPECT_EQ(Marked("{{ {'k': x} | tojson }}", R"({"x": "a\"b"})"), "{\"k\": \"[a\\\"b]\"}");
  EXPECT_EQ(Marked("{{ x | tojson(ensure_ascii=true) }}", R"({"x": "\u00fc"})"), "\"[\\u00fc]\"");
  EXPECT_EQ(Marked("{{ x | indent(2) }}", R"({"x": "a\nb"})"), "[a\n]  [b]");
  EXPECT_EQ(Marked("{{ x | first }}{{ x | last }}{{ x | reverse }}", R"({"x": "ab"})"), "[abba]");
  EXPECT_EQ(Marked("{{ x | list | join }}{{ x | string }}{{ x | default('d') }}", R"({"x": "ab"})"),
            "[ababab]");
  EXPECT_EQ(Marked("{{ x | title }}{{ x | capitalize }}", R"({"x": "ab"})"), "[AbAb]");
  EXPECT_EQ(Marked("{{ x | items | first | first }}", R"({"x": {"key": 1}})"), "[key]");
}

TEST(Marks, ThroughStatements) {
  const char* x = R"({"x": "me", "l": ["p", "q"]})";
  EXPECT_EQ(Marked("{% set y %}a{{ x }}{% endset %}{{ y }}", x), "a[me]");
  EXPECT_EQ(Marked("{% macro m(t) %}<{{ t }}>{% endmacro %}{{ m(x) }}", x), "<[me]>");
  EXPECT_EQ(
      Marked("{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}{{ x }}{% endcall %}", x),
      "<[me]>");
  EXPECT_EQ(Marked("{% filter upper %}a{{ x }}{% endfilter %}", x), "A[ME]");
  EXPECT_EQ(Marked("{% for i in l %}{{ i }},{% endfor %}", x), "[p],[q],");
  EXPECT_EQ(Marked("{% set ns = namespace(t='') %}{% for i in l %}{% set ns.t = ns.t ~ i ~ '.' %}"
                   "{% endfor %}{{ ns.t }}",
                   x),
            "[p].[q].");
  const char* d = R"({"d": {"<|k|>": "v"}})";
  const std::string keys = "{% for k in kwargs %}{{ k }}{% endfor %}{{ kwargs }}";
  EXPECT_EQ(Marked("{% macro m() %}" + keys + "{% endmacro %}{{ m(**d) }}", d),
            "[<|k|>]{\"[<|k|>]\": \"[v]\"}");
  EXPECT_EQ(Marked("{% macro m() %}" + keys + "{% endmacro %}{{ m(own=1) }}", d),
            "own{\"own\": 1}");
  EXPECT_EQ(Marked("{{ namespace(**d) }}{{ namespace(d) }}", d),
            "{\"[<|k|>]\": \"[v]\"}{\"[<|k|>]\": \"[v]\"}");
  EXPECT_EQ(Marked("{{ strftime_now(x) }}", R"({"x": "<|%%|>"})"), "[<|%|>]");
}

}  // namespace
}  // namespace trine::jinja
