#include "runtime/template/template.h"

#include "absl/status/status.h"
#include "runtime/template/eval/builtins.h"
#include "runtime/template/eval/interpreter.h"
#include "runtime/template/parse/lexer.h"
#include "runtime/template/parse/parser.h"
#include "runtime/tokenizer/utf8.h"

namespace trine::jinja {
namespace {

std::tm LocalTime() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

}  // namespace

absl::StatusOr<Template> Template::Parse(std::string source) {
  if (source.size() > kMaxSourceBytes) {
    return TooMuch("the chat template has more than ", kMaxSourceBytes, " bytes");
  }
  if (absl::Status s = ValidateUtf8(source, "the chat template"); !s.ok()) return s;
  auto kept = std::make_shared<const std::string>(std::move(source));
  const auto tokens = Tokenize(*kept);
  if (!tokens.ok()) return tokens.status();
  auto block = Parser(*kept, *tokens).Parse();
  if (!block.ok()) return block.status();
  return Template(std::move(kept), std::make_shared<const Block>(*std::move(block)));
}

absl::StatusOr<Text> Template::Render(const Variables& variables,
                                      const RenderOptions& options) const {
  Interpreter interpreter(options.limits, options.now.value_or(LocalTime()));
  for (const auto& [name, value] : variables) interpreter.SetGlobal(name, value);
  Text text;
  const absl::Status status = interpreter.Run(*block_, &text);
  if (status.ok()) return text;
  if (IsRaised(status)) return absl::Status(status.code(), status.message());
  return AtPlace(*source_, interpreter.error_offset().value_or(0), status);
}

}  // namespace trine::jinja
