#include "tools/server/openai/embedding_request.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tools/server/openai/field.h"
#include "tools/server/openai/prompt_fields.h"

namespace trine::server {
namespace {

void CheckDimensions(const Field& field, int32_t size) {
  int32_t dimensions = size;
  field.Get(&dimensions, 1, INT32_MAX);
  if (field.present() && dimensions != size) {
    field.Fail(absl::StrCat("is ", dimensions, ": this model's vectors have ", size));
  }
}

}  // namespace

absl::StatusOr<EmbeddingRequest> ParseEmbeddingRequest(std::string_view body,
                                                       const RequestDefaults& defaults) {
  absl::StatusOr<Json> document = ParseRequest(body);
  if (!document.ok()) return document.status();
  absl::Status error;
  const Field root(*document, &error);
  EmbeddingRequest request;
  request.inputs =
      ReadPrompts(root["input"], defaults.vocab_size, static_cast<size_t>(defaults.max_inputs));
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const std::string* const text = std::get_if<std::string>(&request.inputs[i]);
    if (text == nullptr || !text->empty()) continue;
    root["input"].Fail(absl::StrCat("has an empty text as item ", i, ": it has no vector"));
  }
  std::string format = "float";
  root["encoding_format"].Get(&format);
  request.base64 = format == "base64";
  if (!request.base64 && format != "float") {
    root["encoding_format"].Fail(absl::StrCat("is '", format, "': expected 'float' or 'base64'"));
  }
  CheckDimensions(root["dimensions"], defaults.embedding_size);
  root["user"].Get(&request.user);
  root["model"].Get(&request.model);
  if (!error.ok()) return error;
  return request;
}

}  // namespace trine::server
