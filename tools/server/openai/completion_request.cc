#include "tools/server/openai/completion_request.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tools/server/openai/field.h"
#include "tools/server/openai/format_fields.h"
#include "tools/server/openai/prompt_fields.h"
#include "tools/server/openai/sampling_fields.h"

namespace trine::server {
namespace {

constexpr int32_t kMaxLogprobs = 20;

void CheckUnsupported(const Field& root, const GenerationRequest& request) {
  std::string suffix;
  root["suffix"].Get(&suffix);
  if (!suffix.empty()) root["suffix"].Fail("is not supported");
  int32_t best_of = request.n;
  root["best_of"].Get(&best_of, 1, INT32_MAX);
  if (best_of != request.n) root["best_of"].Fail("is supported only where it equals 'n'");
}

}  // namespace

absl::StatusOr<GenerationRequest> ParseCompletionRequest(std::string_view body,
                                                         const RequestDefaults& defaults) {
  absl::StatusOr<Json> document = ParseRequest(body);
  if (!document.ok()) return document.status();
  absl::Status error;
  const Field root(*document, &error);
  GenerationRequest request;
  request.prompt.plain =
      ReadPrompts(root["prompt"], defaults.vocab_size, static_cast<size_t>(defaults.max_choices));
  ReadSampling(root, defaults, &request);
  ReadMaxTokens(root, {"max_completion_tokens", "max_tokens", "n_predict"}, 0, &request);
  root["logprobs"].Get(&request.top_logprobs, 0, kMaxLogprobs);
  root["echo"].Get(&request.echo);
  ReadFormat(root, &request);
  CheckUnsupported(root, request);
  const size_t choices = request.prompt.plain.size() * static_cast<size_t>(request.n);
  if (choices > static_cast<size_t>(defaults.max_choices)) {
    root["n"].Fail(absl::StrCat("times the prompts is ", choices, ": expected at most ",
                                defaults.max_choices));
  }
  if (!error.ok()) return error;
  return request;
}

}  // namespace trine::server
