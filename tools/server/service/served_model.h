// A model as the server uses it: the engine, and the defaults, chat template and constraints that
// requests share. Any thread may call it.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/chat/chat_template.h"
#include "runtime/constraint/mask/constraint.h"
#include "runtime/engine/engine.h"
#include "tools/server/openai/answers/plain_answers.h"
#include "tools/server/openai/requests/generation_request.h"
#include "tools/server/openai/tools/answer_plan.h"
#include "tools/server/openai/tools/tool_family.h"

namespace trine::server {

struct ServedModelOptions {
  std::string alias;           // "": the file's name, without .gguf
  std::string chat_template;   // the template's source; "": the model's own template
  jinja::Variables variables;  // template variables of every conversation
  SamplerOptions sampler;      // defaults for requests
};

class ServedModel {
 public:
  static absl::StatusOr<std::unique_ptr<ServedModel>> Create(std::unique_ptr<Engine> engine,
                                                             ServedModelOptions options);

  Engine& engine() const { return *engine_; }
  const ModelCard& card() const { return card_; }
  // Returns whether `name` is the model's name, or its file's name with or without .gguf.
  bool IsCalled(std::string_view name) const;
  const RequestDefaults& defaults() const { return defaults_; }
  ToolFamily family() const { return family_; }

  // Returns the tokens of a conversation followed by `opening`. Returns INVALID_ARGUMENT if the
  // template refuses the conversation or the model has no template.
  absl::StatusOr<std::vector<int32_t>> EncodeConversation(const ChatPrompt& prompt,
                                                          const std::string& opening) const;
  // Returns the tokens of a prompt. If `begins` is true, the prompt begins a text and gets the
  // special tokens that the model wants there.
  absl::StatusOr<std::vector<int32_t>> EncodePlain(const PlainPrompt& prompt,
                                                   bool begins = true) const;

  // Returns the compiled constraint, or null if `text` is none. Each space has its own cache of
  // constraints, so that the time which compiling takes reveals nothing about other clients.
  absl::StatusOr<std::shared_ptr<const Constraint>> ConstraintOf(const ConstraintText& text,
                                                                 const std::string& space) const;

 private:
  using Kept = std::pair<std::string, std::shared_ptr<const Constraint>>;

  ServedModel() = default;

  std::unique_ptr<Engine> engine_;
  ModelCard card_;
  std::string file_name_;  // without .gguf
  RequestDefaults defaults_;
  std::optional<ChatTemplate> chat_;
  absl::Status no_chat_;  // why chat_ is empty
  jinja::Variables variables_;
  ToolFamily family_ = ToolFamily::kGeneral;
  mutable std::mutex mutex_;
  mutable std::list<Kept> constraints_;  // guarded by mutex_; the most recently used first
};

}  // namespace trine::server
