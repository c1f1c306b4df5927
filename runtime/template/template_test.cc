// Tests features that tests/template does not compare with @huggingface/jinja: those in which Trine
// follows Jinja2 instead, its own additions, and its error messages.
#include "runtime/template/template.h"

#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/template/test_util.h"

namespace trine::jinja {
namespace {

TEST(Template, FollowsJinja2) {
  EXPECT_EQ(Rendered("{{ not [] }}{{ not {} }}{{ not [1] }}"), "truetruefalse");
  EXPECT_EQ(Rendered("{{ [1, 'a'] == [1, 'a'] }}{{ {'a': [1]} == {'a': [1]} }}{{ [1] == [2] }}"),
            "truetruefalse");
  EXPECT_EQ(Rendered("{{ '' == false }}{{ '1' == 1 }}"), "falsefalse");
  EXPECT_EQ(Rendered("{{ -7 % 3 }} {{ 7 % -3 }} {{ -7.5 % 2 }} {{ -3.7 | int }}"), "2 -2 0.5 -3");
  EXPECT_EQ(Rendered("{% for x in [1, 2] %}{{ y }}{% set y = x %}{% endfor %}"), "")
      << "what one iteration sets is gone in the next";
  EXPECT_EQ(Rendered("{% for x in [1] %}{% continue %}{% else %}none{% endfor %}"), "");
  EXPECT_EQ(
      Rendered("{% macro m() %}[{{ x }}]{% endmacro %}{% for x in [1] %}{{ m() }}{% endfor %}"),
      "[]")
      << "a macro sees what it was made in, not who calls it";
  EXPECT_EQ(Rendered("{{ {} is iterable }}{% for c in 'ab' %}{{ c }}.{% endfor %}"), "truea.b.");
  EXPECT_EQ(
      Rendered("{{ '\n x \n'.strip('\n') }}|{{ 'xxaxx'.lstrip('x') }}|{{ 'a  '.rstrip(' ') }}"),
      " x |axx|a");
  EXPECT_EQ(Rendered("{{ 'aBC dEF' | title }}{{ 'aBC' | capitalize }}"), "Abc DefAbc");
  EXPECT_EQ(Rendered("{{ x | length }}{{ x[0] }}{{ x[-1] }}", R"({"x": "😀é"})"), "2😀é");
  EXPECT_EQ(Rendered("{{ [] | tojson(indent=2) }}{{ {} | tojson(indent=2) }}"), "[]{}");
  EXPECT_EQ(Rendered("{{ 2.0 | tojson }}{{ 2.0 ~ '' }}"), "2.02.0");
}

TEST(Template, HasMoreThanThePackage) {
  EXPECT_EQ(Rendered("{{ [1, 2, 3, 4] | select('odd') }}{{ [1, 2] | reject('odd') }}"),
            "[1, 3][2]");
  EXPECT_EQ(Rendered("{{ ['a', 'b'] | map('upper') | join }}{{ ['1'] | map('int') | sum }}"),
            "AB1");
  EXPECT_EQ(
      Rendered("{{ [3, 1] | min }}{{ [3, 1] | max }}{{ [1, 2] | count }}{{ 2.567 | round(1) }}"),
      "1322.6");
  EXPECT_EQ(
      Rendered("{{ 4 is divisibleby 2 }}{{ 4 is divisibleby(3) }}{{ 1 is in [1] }}{{ 1 is eq 1 }}"),
      "truefalsetruetrue");
  EXPECT_EQ(Rendered("{{ 'ab' * 2 }}{{ 'a' < 'b' }}"), "ababtrue");
  EXPECT_EQ(Rendered(R"({{ '\u00e9\x41' }})"), "éA");
  EXPECT_EQ(Rendered("a\n  {%+ if true %}b{% endif +%}\nc"), "a\n  b\nc");
  EXPECT_EQ(
      Rendered("{{ 'a-b'.removeprefix('a-') }}{{ 'abc'.find('c') }}{{ 'a\nb\n'.splitlines() }}"),
      "b2[\"a\", \"b\"]");
  EXPECT_EQ(Rendered("{{ l | map(attribute='n.0') | join(',') }}{{ l | join('+', attribute='m') }}",
                     R"({"l": [{"n": [1], "m": "x"}, {"n": [2], "m": "y"}]})"),
            "1,2x+y");
}

TEST(Template, SaysWhereItIsWrong) {
  EXPECT_EQ(Rendered("a\n{% if x %}\n  {{ 'b' | nosuch }}\n{% endif %}", R"({"x": 1})"),
            "error: chat template, line 3, column 12: there is no filter \"nosuch\", in: "
            "{{ 'b' | nosuch }}");
  EXPECT_EQ(Rendered("x\n{% if true %}\ny"),
            "error: chat template, line 2, column 4: there is no {% endif %}, in: {% if true %}");
  EXPECT_EQ(
      Rendered("ü {{ 1 + }}"),
      "error: chat template, line 1, column 10: \"}}\" stands where an expression was expected, "
      "in: ü {{ 1 + }}");
  EXPECT_EQ(Rendered("{{ f(1) }}"),
            "error: chat template, line 1, column 5: \"f\" is an undefined value, which can't be "
            "called, in: {{ f(1) }}");
  EXPECT_EQ(Rendered("{{ none + 1 }}"),
            "error: chat template, line 1, column 9: \"+\" means nothing between none and an "
            "integer, in: {{ none + 1 }}");
  const auto wrong = Template::Parse("{{ 'a }}");
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Template, RaisesInItsOwnWords) {
  const auto text = RenderText(
      "{% if true %}{{ raise_exception('No ' ~ x ~ ', please') }}{% endif %}", R"({"x": "tools"})");
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(text.status().message(), "No tools, please");
}

TEST(Template, RefusesWhatIsNoText) {
  const auto wrong = Template::Parse("a\xFFz");
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
  const auto long_one = Template::Parse(std::string(Template::kMaxSourceBytes + 1, 'a'));
  EXPECT_EQ(long_one.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Template, TellsTheTimeItIsGiven) {
  RenderOptions options;
  options.now = std::tm{};
  options.now->tm_year = 124;
  options.now->tm_mon = 6;
  options.now->tm_mday = 4;
  options.now->tm_wday = 4;
  options.now->tm_hour = 13;
  const auto text = RenderText(
      "{{ strftime_now('%Y-%m-%d %-d %e %B %b %A %a %I %p %y %j %M %S %Q 100%') }}", "{}", options);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->bytes(), "2024-07-04 4  4 July Jul Thursday Thu 01 PM 24 001 00 00 %Q 100%");
}

TEST(Template, RendersOnManyThreads) {
  const auto parsed = Template::Parse(
      "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + m | length %}"
      "{% endfor %}{{ ns.n }}");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Variables variables = FromJson(R"({"messages": ["a", "bb", "ccc"]})");
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const auto text = parsed->Render(variables);
        right[t] += text.ok() && text->bytes() == "6" ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int n : right) EXPECT_EQ(n, 200);
}

TEST(Template, MacrosOutliveTheirScopeSafely) {
  const std::string made =
      "{% set ns = namespace() %}{% for x in [1] %}{% macro m() %}{{ x }}{% endmacro %}"
      "{% set ns.f = m %}{{ ns.f() }}{% endfor %}{{ ns.f() }}";
  EXPECT_NE(Rendered(made).find("is gone"), std::string::npos) << Rendered(made);
}

}  // namespace
}  // namespace trine::jinja
