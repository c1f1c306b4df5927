#include "tools/server/openai/chunks.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/server/openai/ids.h"

namespace trine::server {
namespace {

Json HeadJson(const AnswerHead& head, const char* object) {
  Json json = Json::object();
  json["id"] = head.id;
  json["object"] = object;
  json["created"] = head.created;
  json["model"] = head.model;
  return json;
}

}  // namespace

AnswerHead NewAnswerHead(std::string_view prefix, std::string_view model) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.id = RandomId(prefix),
          .model = std::string(model),
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count()};
}

Json UsageJson(const Usage& usage) {
  Json json = Json::object();
  json["prompt_tokens"] = usage.prompt_tokens;
  json["completion_tokens"] = usage.completion_tokens;
  json["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  json["prompt_tokens_details"] = Json{{"cached_tokens", usage.cached_tokens}};
  return json;
}

const char* FinishReasonText(AnswerEnd end) { return end == AnswerEnd::kStop ? "stop" : "length"; }

Chunks::Chunks(const AnswerHead& head, const char* object, bool with_usage)
    : begin_(Dump(HeadJson(head, object))), end_(with_usage ? R"(],"usage":null})" : "]}") {
  begin_.back() = ',';  // open again
  begin_ += "\"choices\":[";
}

std::string Chunks::Of(const Json& choice) const {
  return absl::StrCat(begin_, Dump(choice), end_);
}

std::string Chunks::OfUsage(const Usage& usage) const {
  return absl::StrCat(begin_, "],\"usage\":", Dump(UsageJson(usage)), "}");
}

std::string WholeAnswer(const AnswerHead& head, const char* object, Json choices,
                        const Usage& usage) {
  Json json = HeadJson(head, object);
  json["choices"] = std::move(choices);
  json["usage"] = UsageJson(usage);
  return Dump(json);
}

}  // namespace trine::server
