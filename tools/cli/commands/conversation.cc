#include "tools/cli/commands/conversation.h"

#include <string_view>
#include <utility>

#include "runtime/chat/chat_template.h"
#include "runtime/engine/set_tokens.h"
#include "runtime/gguf/output_file.h"
#include "runtime/template/values/budget.h"
#include "runtime/template/values/print.h"
#include "runtime/tokenizer/utf8.h"
#include "tools/cli/options/engine_arguments.h"
#include "tools/cli/options/read_input.h"
#include "tools/cli/terminal/signals.h"

namespace trine {
namespace {

std::string_view RoleOf(const jinja::Value& message) {
  return message.dict().Find("role")->text().bytes();
}

}  // namespace

absl::Status Conversation::SetSystem(const std::string& text) {
  if (absl::Status s = ValidateUtf8(text, "the system message"); !s.ok()) return s;
  if (!messages_.empty() && RoleOf(messages_[0]) == "system") messages_.erase(messages_.begin());
  if (!text.empty()) messages_.insert(messages_.begin(), ChatMessage("system", text));
  return absl::OkStatus();
}

void Conversation::Reset() {
  const bool system = !messages_.empty() && RoleOf(messages_[0]) == "system";
  messages_.resize(system ? 1 : 0);
  session_->Truncate(0);
}

absl::Status Conversation::Answer(const GenerateOptions& options, Generation* answer) {
  const auto text = chat_.Render(jinja::Given::OfList(messages_), options_);
  if (!text.ok()) return text.status();
  const auto tokens = EncodeChat(*session_->engine().tokenizer(), *text);
  if (!tokens.ok()) return tokens.status();
  if (absl::Status s = SetTokens(session_.get(), *tokens); !s.ok()) return s;
  absl::Status status = Generate(session_.get(), options, answer);
  if (status.ok()) messages_.push_back(ChatMessage("assistant", answer->text));
  return status;
}

absl::Status Conversation::Say(const std::string& text, const GenerateOptions& options,
                               Generation* answer) {
  if (absl::Status s = ValidateUtf8(text, "the message"); !s.ok()) return s;
  messages_.push_back(ChatMessage("user", text));
  absl::Status status = Answer(options, answer);
  if (!status.ok()) messages_.pop_back();
  return status;
}

absl::Status Conversation::Again(const GenerateOptions& options, Generation* answer) {
  if (messages_.empty() || RoleOf(messages_.back()) != "assistant") {
    return absl::FailedPreconditionError("there is no answer to give again");
  }
  jinja::Value last = std::move(messages_.back());
  messages_.pop_back();
  absl::Status status = Answer(options, answer);
  if (!status.ok()) messages_.push_back(std::move(last));
  return status;
}

absl::Status Conversation::Save(const std::string& path) const {
  jinja::Limits unlimited;
  unlimited.steps = unlimited.memory = int64_t{1} << 40;
  jinja::Budget budget(unlimited);
  jinja::JsonStyle style;
  style.indent = 2;
  jinja::Text json;
  const absl::Status written =
      jinja::AppendJson(jinja::Given::OfList(messages_), style, budget, &json);
  if (!written.ok()) return written;
  json.Append("\n", false);
  // Treat a limit on file sizes as an error like a full disk: neither may destroy the file saved
  // before.
  const ScopedSignals file_size({SIGXFSZ}, SIG_IGN);
  const auto file = gguf::OutputFile::Create(path);
  if (!file.ok()) return file.status();
  absl::Status status = (*file)->Append(json.bytes().data(), json.size());
  if (status.ok()) status = (*file)->Close();
  if (status.ok()) status = (*file)->Publish();
  return status;
}

absl::Status Conversation::Load(const std::string& path) {
  const auto json = ReadWholeFile(path);
  if (!json.ok()) return json.status();
  const auto messages = ParseMessages(*json);
  if (!messages.ok()) return About(path, messages.status());
  messages_ = messages->list();
  return absl::OkStatus();
}

}  // namespace trine
