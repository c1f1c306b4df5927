// Parses and renders chat templates, which are written in a part of Jinja (docs/chat.md says
// which).
//
//   auto parsed = Template::Parse(source);
//   auto text = parsed->Render({{"messages", messages}, {"add_generation_prompt",
//   Value::Bool(true)}});
//
// A template is parsed once and rendered any number of times, by any number of threads at once.
// Limits bounds the time and the memory of a rendering.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/template/parse/ast.h"
#include "runtime/template/values/budget.h"
#include "runtime/template/values/text.h"
#include "runtime/template/values/value.h"

namespace trine::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

struct RenderOptions {
  Limits limits;
  std::optional<std::tm> now;  // for strftime_now(); unset: the local time
};

class Template {
 public:
  static constexpr size_t kMaxSourceBytes = 4 << 20;

  // Fails with INVALID_ARGUMENT, with line and column, if the source is malformed, and with
  // RESOURCE_EXHAUSTED if it is too long or nested too deep.
  static absl::StatusOr<Template> Parse(std::string source);

  // Fails with INVALID_ARGUMENT, with line and column, if the template does something invalid. If
  // the template calls raise_exception(), the message is the template's text alone. Fails with
  // RESOURCE_EXHAUSTED if a limit is exceeded.
  absl::StatusOr<Text> Render(const Variables& variables, const RenderOptions& options = {}) const;

  const std::string& source() const { return *source_; }

 private:
  Template(std::shared_ptr<const std::string> source, std::shared_ptr<const Block> block)
      : source_(std::move(source)), block_(std::move(block)) {}

  std::shared_ptr<const std::string> source_;
  std::shared_ptr<const Block> block_;
};

}  // namespace trine::jinja
