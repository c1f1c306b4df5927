#include "runtime/engine/set_tokens.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace trine {

int64_t CommonTokens(const Session& session, std::span<const int32_t> tokens) {
  const std::vector<int32_t>& held = session.sequence().tokens();
  const size_t most = std::min(held.size(), tokens.size());
  const auto different =
      std::mismatch(held.begin(), held.begin() + static_cast<ptrdiff_t>(most), tokens.begin());
  return different.first - held.begin();
}

absl::Status SetTokens(Session* session, std::span<const int32_t> tokens) {
  const int64_t n = static_cast<int64_t>(tokens.size());
  if (n > session->engine().context()) {
    return absl::OutOfRangeError(absl::StrCat(
        "the conversation has ", n, " tokens, the context holds ", session->engine().context()));
  }
  const int64_t common = CommonTokens(*session, tokens);
  session->Truncate(common);
  const absl::Status status = session->Append(tokens.subspan(static_cast<size_t>(common)));
  // Also where nothing was appended: the tokens may end inside an earlier answer.
  if (status.ok()) session->BeginAnswer();
  return status;
}

}  // namespace trine
