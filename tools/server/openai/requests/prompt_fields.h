// Reads the fields of a request that have its prompt: texts, tokens and messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/server/openai/requests/field.h"
#include "tools/server/openai/requests/generation_request.h"

namespace trine::server {

// Reads prompts as /v1/completions and /v1/embeddings take them: a string, an array of strings, an
// array of tokens, or an array of arrays of tokens. There must be at least one prompt. Arrays of
// tokens must not be empty; texts may be.
std::vector<PlainPrompt> ReadPrompts(const Field& field, int32_t vocab_size, size_t at_most);

// Reads an array of tokens.
std::vector<int32_t> ReadTokens(const Field& field, int32_t vocab_size);

// Reads and checks an array of messages. Returns them in the form that the runtime's ParseMessages
// reads. Keeps all members that are not null. Joins content that comes in parts. Replaces the role
// developer by system, which templates know.
Json ReadMessages(const Field& messages);

// Reads a string or an array of text parts. Refuses images, sound and files by name.
std::string ReadText(const Field& content);

// Returns the role as templates know it, or "" if the role is wrong.
std::string ReadRole(const Field& role);

// Returns the template's variables other than messages and tools: a JSON object, or "" if there are
// none.
std::string ReadTemplateVariables(const Field& root);

}  // namespace trine::server
