// The options of commands that put messages into a chat template.
#ifndef TRINE_TOOLS_CLI_CHAT_ARGUMENTS_H_
#define TRINE_TOOLS_CLI_CHAT_ARGUMENTS_H_

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "runtime/chat_template.h"
#include "runtime/engine.h"

namespace trine {

struct ChatArguments {
  std::string system_prompt;
  std::string chat_template;  // a file, or the template itself; "": the model's
  std::string variables;      // JSON
};

// --system-prompt, --chat-template, --chat-template-kwargs. `needs`: an option they make sense with
// alone, or "".
void AddChatOptions(CLI::App* command, const std::string& needs, ChatArguments* arguments);

// The last two of them, for a command to whose conversations others bring the messages.
void AddChatTemplateOptions(CLI::App* command, ChatArguments* arguments);

// The source of the one that was given; "": the model's own is meant.
absl::StatusOr<std::string> ReadChatTemplate(const ChatArguments& arguments);
absl::StatusOr<ChatTemplate> LoadChatTemplate(const ChatArguments& arguments, const Engine& engine);
absl::StatusOr<ChatOptions> MakeChatOptions(const ChatArguments& arguments);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_CHAT_ARGUMENTS_H_
