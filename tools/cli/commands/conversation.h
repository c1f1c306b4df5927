// A conversation with a model: the messages, and the session that has read them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/chat/chat_template.h"
#include "runtime/engine/generate.h"
#include "runtime/template/values/value.h"

namespace trine {

class Conversation {
 public:
  Conversation(std::unique_ptr<Session> session, ChatTemplate chat, ChatOptions options)
      : session_(std::move(session)), chat_(std::move(chat)), options_(std::move(options)) {}

  // Sets the system message; "" removes it. The rest of the conversation stays.
  absl::Status SetSystem(const std::string& text);
  // Removes all messages but the system message.
  void Reset();

  // Adds a message and generates the answer. Evaluates only tokens that are new in the
  // conversation. Removes the message again if it can't be answered.
  absl::Status Say(const std::string& text, const GenerateOptions& options, Generation* answer);
  // Generates the last answer again, and keeps the old one if that fails. Returns
  // FAILED_PRECONDITION if there is no answer.
  absl::Status Again(const GenerateOptions& options, Generation* answer);

  // Writes the messages as JSON. Replaces an existing file as a whole, or not at all.
  absl::Status Save(const std::string& path) const;
  // Replaces the messages by those of a file.
  absl::Status Load(const std::string& path);

  Session& session() const { return *session_; }
  const std::vector<jinja::Value>& messages() const { return messages_; }

 private:
  absl::Status Answer(const GenerateOptions& options, Generation* answer);

  std::unique_ptr<Session> session_;
  ChatTemplate chat_;
  ChatOptions options_;
  std::vector<jinja::Value> messages_;
};

}  // namespace trine
