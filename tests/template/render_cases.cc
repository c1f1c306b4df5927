// Renders templates for parity.cjs: reads [{"template": ..., "variables": {...}}, ...] from
// standard input and writes [{"text": ...} or {"error": ...}, ...].
#include <cstdio>
#include <ctime>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/template/template.h"
#include "runtime/template/values/print.h"

namespace trine::jinja {
namespace {

// The clock of parity.cjs: Friday, 26 July 2024, 14:05:09.
std::tm FixedTime() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mon = 6;
  time.tm_mday = 26;
  time.tm_wday = 5;
  time.tm_yday = 207;
  time.tm_hour = 14;
  time.tm_min = 5;
  time.tm_sec = 9;
  return time;
}

absl::StatusOr<Text> RenderCase(const Value& one) {
  const Value* source = one.dict().Find("template");
  const Value* given = one.dict().Find("variables");
  auto parsed = Template::Parse(source->text().bytes());
  if (!parsed.ok()) return parsed.status();
  Variables variables;
  for (const Dict::Entry& entry : given->dict().entries()) {
    variables.emplace_back(entry.key.bytes(), entry.value);
  }
  RenderOptions options;
  options.now = FixedTime();
  return parsed->Render(variables, options);
}

int Main() {
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  const auto cases = ParseJson(input, "the cases");
  if (!cases.ok()) {
    std::fprintf(stderr, "%s\n", std::string(cases.status().message()).c_str());
    return 1;
  }
  std::vector<Value> results;
  for (const Value& one : cases->list()) {
    const auto text = RenderCase(one);
    Dict result;
    if (text.ok()) {
      result.Set(Text("text"), Value::String(*text));
    } else {
      result.Set(Text("error"), Value::String(std::string(text.status().message())));
    }
    results.push_back(Given::OfDict(std::move(result)));
  }
  Budget budget({});
  Text json;
  if (!AppendJson(Given::OfList(std::move(results)), {}, budget, &json).ok()) return 1;
  return std::fwrite(json.bytes().data(), 1, json.size(), stdout) == json.size() ? 0 : 1;
}

}  // namespace
}  // namespace trine::jinja

int main() { return trine::jinja::Main(); }
