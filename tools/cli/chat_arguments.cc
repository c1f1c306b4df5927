#include "tools/cli/chat_arguments.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/chat_messages.h"
#include "runtime/tokenizer/utf8.h"
#include "tools/cli/read_input.h"

namespace trine {
namespace {

std::vector<CLI::Option*> AddTemplateOptions(CLI::App* command, const std::string& with,
                                             ChatArguments* arguments) {
  return {
      command->add_option("--chat-template", arguments->chat_template,
                          with + "the chat template, a file or the template itself (Jinja), in "
                                 "place of the model's"),
      command->add_option("--chat-template-kwargs", arguments->variables,
                          with + "what the template is told besides, a JSON object: "
                                 "'{\"enable_thinking\": false}'"),
  };
}

}  // namespace

void AddChatTemplateOptions(CLI::App* command, ChatArguments* arguments) {
  AddTemplateOptions(command, "", arguments);
}

void AddChatOptions(CLI::App* command, const std::string& needs, ChatArguments* arguments) {
  const std::string with = needs.empty() ? "" : "With " + needs + ": ";
  std::vector<CLI::Option*> options = {command->add_option(
      "--system-prompt", arguments->system_prompt, with + "a system message; also -sys")};
  for (CLI::Option* option : AddTemplateOptions(command, with, arguments)) {
    options.push_back(option);
  }
  if (needs.empty()) return;
  for (CLI::Option* option : options) option->needs(needs);
}

absl::StatusOr<std::string> ReadChatTemplate(const ChatArguments& arguments) {
  // Every template has tags; hardly any file's name does.
  if (arguments.chat_template.empty() || arguments.chat_template.find("{{") != std::string::npos ||
      arguments.chat_template.find("{%") != std::string::npos) {
    return arguments.chat_template;
  }
  auto source = ReadWholeFile(arguments.chat_template);
  if (source.ok()) return source;
  return absl::Status(source.status().code(),
                      absl::StrCat("--chat-template ", source.status().message(),
                                   ": it is a file or a template; no templates have names here"));
}

absl::StatusOr<ChatTemplate> LoadChatTemplate(const ChatArguments& arguments,
                                              const Engine& engine) {
  const Tokenizer& tokenizer = *engine.tokenizer();
  auto source = ReadChatTemplate(arguments);
  if (!source.ok()) return source.status();
  return source->empty() ? ChatTemplate::FromModel(engine.file().metadata(), tokenizer)
                         : ChatTemplate::FromSource(*std::move(source), tokenizer);
}

absl::StatusOr<ChatOptions> MakeChatOptions(const ChatArguments& arguments) {
  if (absl::Status s = ValidateUtf8(arguments.system_prompt, "the system prompt"); !s.ok())
    return s;
  ChatOptions options;
  if (arguments.variables.empty()) return options;
  auto extra = ParseVariables(arguments.variables);
  if (!extra.ok()) return extra.status();
  options.extra = *std::move(extra);
  return options;
}

}  // namespace trine
