// Messages of a request, checked, in the form that ParseMessages of the runtime reads.
#ifndef TRINE_TOOLS_SERVER_OPENAI_MESSAGE_FIELDS_H_
#define TRINE_TOOLS_SERVER_OPENAI_MESSAGE_FIELDS_H_

#include <string>

#include "tools/server/openai/field.h"

namespace trine::server {

// An array of messages. They keep what members they came with, but for those that are null; content
// in parts is joined, and the role developer is written as system, which templates know.
Json ReadMessages(const Field& messages);

// A string, or an array of parts that are text. Pictures, sound and files are refused by name.
std::string ReadText(const Field& content);

// The role, as templates know it; "" where it is wrong.
std::string ReadRole(const Field& role);

// What the template is told beside messages and tools: an object, or "".
std::string ReadTemplateVariables(const Field& root);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_MESSAGE_FIELDS_H_
