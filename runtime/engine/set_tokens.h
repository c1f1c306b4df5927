// Replaces a session's tokens. The tokens with which both texts begin stay evaluated, so that a
// conversation can continue without being evaluated again.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "runtime/engine/session.h"

namespace trine {

// Returns the number of tokens that the session and `tokens` have in common at their beginning.
int64_t CommonTokens(const Session& session, std::span<const int32_t> tokens);

// Replaces the session's tokens by `tokens` and begins a new answer, as in a new session. Returns
// OUT_OF_RANGE, and leaves the session unchanged, if they don't fit into the context.
absl::Status SetTokens(Session* session, std::span<const int32_t> tokens);

}  // namespace trine
