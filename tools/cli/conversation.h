// A conversation with a model: messages, and the session that has read them.
#ifndef TRINE_TOOLS_CLI_CONVERSATION_H_
#define TRINE_TOOLS_CLI_CONVERSATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/chat_template.h"
#include "runtime/generate.h"
#include "runtime/template/value.h"

namespace trine {

class Conversation {
 public:
  Conversation(std::unique_ptr<Session> session, ChatTemplate chat, ChatOptions options)
      : session_(std::move(session)), chat_(std::move(chat)), options_(std::move(options)) {}

  // "": none. The rest of the conversation stays.
  absl::Status SetSystem(const std::string& text);
  // Back to the system message.
  void Reset();

  // Says something and has it answered. Of the conversation only what is new is read. When it fails
  // before an answer was begun, nothing has been said.
  absl::Status Say(const std::string& text, const GenerateOptions& options, Generation* answer);
  // The last answer once more. FAILED_PRECONDITION when there is none.
  absl::Status Again(const GenerateOptions& options, Generation* answer);

  // The messages as JSON. A file that is there is replaced by a whole one, or not at all.
  absl::Status Save(const std::string& path) const;
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

#endif  // TRINE_TOOLS_CLI_CONVERSATION_H_
