#include "tools/server/service/served_model.h"

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/chat/chat_template.h"
#include "tools/server/openai/api_error.h"

namespace trine::server {
namespace {

constexpr size_t kMostConstraints = 32;

// Removes ".gguf" only: other dots are parts of names, as in "qwen2.5".
std::string_view WithoutEnding(std::string_view name) {
  constexpr std::string_view kEnding = ".gguf";
  if (name.size() > kEnding.size() && name.ends_with(kEnding)) name.remove_suffix(kEnding.size());
  return name;
}

std::string NameOf(const Engine& engine) {
  const std::filesystem::path path = engine.file().parts()[0].path;
  return std::string(WithoutEnding(path.filename().string()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServedModel>> ServedModel::Create(std::unique_ptr<Engine> engine,
                                                                 ServedModelOptions options) {
  std::unique_ptr<ServedModel> model(new ServedModel());
  const ModelConfig& config = engine->config();
  model->file_name_ = NameOf(*engine);
  model->card_.id = options.alias.empty() ? model->file_name_ : options.alias;
  model->card_.created = static_cast<int64_t>(std::time(nullptr));
  model->card_.context_length = engine->context();
  model->card_.vocab_size = config.n_vocab;
  model->card_.embedding_size = config.n_embd;
  model->defaults_.sampler = std::move(options.sampler);
  model->defaults_.vocab_size = static_cast<int32_t>(config.n_vocab);
  model->defaults_.embedding_size = static_cast<int32_t>(config.n_embd);
  if (absl::Status s = Validate(model->defaults_.sampler, model->defaults_.vocab_size); !s.ok()) {
    return s;
  }
  auto chat = options.chat_template.empty()
                  ? ChatTemplate::FromModel(engine->file().metadata(), *engine->tokenizer())
                  : ChatTemplate::FromSource(options.chat_template, *engine->tokenizer());
  if (chat.ok()) {
    model->family_ = ToolFamilyOf(chat->source_for_tools());
    model->chat_ = *std::move(chat);
  } else if (!absl::IsFailedPrecondition(chat.status())) {
    return chat.status();
  } else {
    model->no_chat_ = chat.status();
    model->card_.chat = false;
  }
  model->variables_ = std::move(options.variables);
  model->engine_ = std::move(engine);
  return model;
}

bool ServedModel::IsCalled(std::string_view name) const {
  return name == card_.id || WithoutEnding(name) == WithoutEnding(card_.id) ||
         WithoutEnding(name) == file_name_;
}

absl::StatusOr<std::vector<int32_t>> ServedModel::EncodeConversation(
    const ChatPrompt& prompt, const std::string& opening) const {
  if (!chat_) {
    return ParamError("messages", absl::StrCat(no_chat_.message(),
                                               "; /v1/completions continues text without one"));
  }
  auto messages = ParseMessages(prompt.messages_json);
  if (!messages.ok()) return WithParam(messages.status(), "messages");
  ChatOptions options;
  options.extra = variables_;
  if (!prompt.variables_json.empty()) {
    auto more = ParseVariables(prompt.variables_json);
    if (!more.ok()) return WithParam(more.status(), "chat_template_kwargs");
    for (auto& variable : *more) {
      std::erase_if(options.extra, [&](const auto& v) { return v.first == variable.first; });
      options.extra.push_back(std::move(variable));
    }
  }
  if (!prompt.tools_json.empty()) {
    auto tools = ParseTools(prompt.tools_json);
    if (!tools.ok()) return WithParam(tools.status(), "tools");
    options.tools = *std::move(tools);
  }
  auto text = chat_->Render(*messages, options);
  if (!text.ok()) return WithParam(text.status(), "messages");
  if (!opening.empty()) text->Append(opening, /*foreign=*/false);
  return EncodeChat(*engine_->tokenizer(), *text);
}

absl::StatusOr<std::vector<int32_t>> ServedModel::EncodePlain(const PlainPrompt& prompt,
                                                              bool begins) const {
  if (const auto* tokens = std::get_if<std::vector<int32_t>>(&prompt)) return *tokens;
  auto tokens = engine_->tokenizer()->Encode(std::get<std::string>(prompt),
                                             {.add_special = begins, .parse_special = true});
  if (tokens.ok() && tokens->empty()) return absl::InvalidArgumentError("the text is empty");
  return tokens;
}

absl::StatusOr<std::shared_ptr<const Constraint>> ServedModel::ConstraintOf(
    const ConstraintText& text, const std::string& space) const {
  if (text.kind == ConstraintText::Kind::kNone) return nullptr;
  const bool schema = text.kind == ConstraintText::Kind::kJsonSchema;
  const std::string key = absl::StrCat(space, "\n", schema ? "s" : "g", text.text);
  {
    std::lock_guard lock(mutex_);
    for (auto it = constraints_.begin(); it != constraints_.end(); ++it) {
      if (it->first != key) continue;
      constraints_.splice(constraints_.begin(), constraints_, it);
      return it->second;
    }
  }
  const ConstraintVocabulary& vocabulary = engine_->constraint_vocabulary();
  auto made = schema ? Constraint::FromJsonSchema(text.text, vocabulary)
                     : Constraint::FromGbnf(text.text, vocabulary);
  if (!made.ok()) return WithParam(made.status(), text.param);
  std::lock_guard lock(mutex_);
  constraints_.emplace_front(key, *made);
  if (constraints_.size() > kMostConstraints) constraints_.pop_back();
  return made;
}

}  // namespace trine::server
