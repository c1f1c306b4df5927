// A model as the server has it: the engine, and what is made of its file once. Any thread.
#ifndef TRINE_TOOLS_SERVER_SERVICE_SERVED_MODEL_H_
#define TRINE_TOOLS_SERVER_SERVICE_SERVED_MODEL_H_

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
#include "runtime/chat_template.h"
#include "runtime/constraint/constraint.h"
#include "runtime/engine.h"
#include "tools/server/openai/answer_plan.h"
#include "tools/server/openai/generation_request.h"
#include "tools/server/openai/plain_answers.h"
#include "tools/server/openai/tool_family.h"

namespace trine::server {

struct ServedModelOptions {
  std::string alias;           // "": its file's name, without .gguf
  std::string chat_template;   // its source; "": the model's own
  jinja::Variables variables;  // for every conversation
  SamplerOptions sampler;      // where requests say nothing
};

class ServedModel {
 public:
  static absl::StatusOr<std::unique_ptr<ServedModel>> Create(std::unique_ptr<Engine> engine,
                                                             ServedModelOptions options);

  Engine& engine() const { return *engine_; }
  const ModelCard& card() const { return card_; }
  // Whether a client that writes `name` means this one: its name or its file's, with or without
  // the ending.
  bool IsCalled(std::string_view name) const;
  const RequestDefaults& defaults() const { return defaults_; }
  bool has_chat() const { return chat_.has_value(); }
  ToolFamily family() const { return family_; }

  // The tokens of a conversation, with `opening` behind it. INVALID_ARGUMENT where the template
  // refuses it, FAILED_PRECONDITION where the model has none.
  absl::StatusOr<std::vector<int32_t>> EncodeConversation(const ChatPrompt& prompt,
                                                          const std::string& opening) const;
  // `begins`: nothing is before it, so that it gets what the model wants before a text.
  absl::StatusOr<std::vector<int32_t>> EncodePlain(const PlainPrompt& prompt,
                                                   bool begins = true) const;

  // Null for none. Those that are asked for again and again are kept, for each space its own: how
  // long it takes tells nobody what others asked for.
  absl::StatusOr<std::shared_ptr<const Constraint>> ConstraintOf(const ConstraintText& text,
                                                                 const std::string& space) const;

 private:
  using Kept = std::pair<std::string, std::shared_ptr<const Constraint>>;

  ServedModel() = default;

  std::unique_ptr<Engine> engine_;
  ModelCard card_;
  std::string file_name_;  // without its ending
  RequestDefaults defaults_;
  std::optional<ChatTemplate> chat_;
  absl::Status no_chat_;  // why there is none
  jinja::Variables variables_;
  ToolFamily family_ = ToolFamily::kGeneral;
  mutable std::mutex mutex_;
  mutable std::list<Kept> constraints_;  // guarded by mutex_; the last one used first
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_SERVED_MODEL_H_
