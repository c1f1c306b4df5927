// Makes a session hold other tokens while what both begin with stays evaluated: how a conversation
// goes on without being read again.
#ifndef TRINE_RUNTIME_SET_TOKENS_H_
#define TRINE_RUNTIME_SET_TOKENS_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "runtime/session.h"

namespace trine {

// How many tokens of the session's stay when it is to hold these.
int64_t CommonTokens(const Session& session, std::span<const int32_t> tokens);

// What is generated next is an answer of its own, as in a new session that these were appended to.
// OUT_OF_RANGE, and the session as it was, when they don't fit into the context.
absl::Status SetTokens(Session* session, std::span<const int32_t> tokens);

}  // namespace trine

#endif  // TRINE_RUNTIME_SET_TOKENS_H_
