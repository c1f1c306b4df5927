// Messages of a conversation, as values a template can read. They keep whatever members they came
// with: role, content, name, tool_calls, tool_call_id, reasoning_content, ...
#ifndef TRINE_RUNTIME_CHAT_MESSAGES_H_
#define TRINE_RUNTIME_CHAT_MESSAGES_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/template/template.h"
#include "runtime/template/value.h"

namespace trine {

// {"role": role, "content": content}
jinja::Value ChatMessage(std::string_view role, std::string_view content);

// A list of messages brought to the form templates expect: content of several text parts is joined,
// and arguments of tool calls given as JSON in a string are read. INVALID_ARGUMENT names the
// message that has no role, or parts that are not text.
absl::StatusOr<jinja::Value> NormalizeMessages(const jinja::Value& messages);

// The same of a JSON array.
absl::StatusOr<jinja::Value> ParseMessages(std::string_view json);

// A JSON array of tools, as they are described to a model.
absl::StatusOr<jinja::Value> ParseTools(std::string_view json);

// A JSON object: each member a variable of the template's.
absl::StatusOr<jinja::Variables> ParseVariables(std::string_view json);

}  // namespace trine

#endif  // TRINE_RUNTIME_CHAT_MESSAGES_H_
