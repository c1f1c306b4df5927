// Chat templates: the part of Jinja they are written in. docs/chat.md says which part that is.
//
//   auto parsed = Template::Parse(source);
//   auto text = parsed->Render({{"messages", messages}, {"add_generation_prompt",
//   Value::Bool(true)}});
//
// A template is parsed once and rendered any number of times, by any number of threads at once.
// Nothing a template says makes it run or grow without bounds; see Limits.
#ifndef TRINE_RUNTIME_TEMPLATE_TEMPLATE_H_
#define TRINE_RUNTIME_TEMPLATE_TEMPLATE_H_

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/template/ast.h"
#include "runtime/template/budget.h"
#include "runtime/template/text.h"
#include "runtime/template/value.h"

namespace trine::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

struct RenderOptions {
  Limits limits;
  std::optional<std::tm> now;  // what strftime_now() tells; else the local time
};

class Template {
 public:
  static constexpr size_t kMaxSourceBytes = 4 << 20;

  // INVALID_ARGUMENT with line and column where it can't be read.
  static absl::StatusOr<Template> Parse(std::string source);

  // INVALID_ARGUMENT with line and column where the template does what makes no sense, or with the
  // text of its raise_exception() alone; RESOURCE_EXHAUSTED beyond a limit.
  absl::StatusOr<Text> Render(const Variables& variables, const RenderOptions& options = {}) const;

  const std::string& source() const { return *source_; }

 private:
  Template(std::shared_ptr<const std::string> source, std::shared_ptr<const Block> block)
      : source_(std::move(source)), block_(std::move(block)) {}

  std::shared_ptr<const std::string> source_;
  std::shared_ptr<const Block> block_;
};

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_TEMPLATE_H_
