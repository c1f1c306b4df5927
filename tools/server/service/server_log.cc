#include "tools/server/service/server_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/server/openai/json.h"

namespace trine::server {
namespace {

const char* NameOf(LogLevel level) {
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  return kNames[static_cast<size_t>(level)];
}

// Returns one plain word as it is, anything else as JSON, so that no text of a client can begin a
// new line.
std::string Word(const std::string& text) {
  for (const char c : text) {
    if (c <= ' ' || c == '"' || c == '=' || static_cast<unsigned char>(c) >= 0x7f) {
      return Dump(Json(text));
    }
  }
  return text.empty() ? "\"\"" : text;
}

std::string TextOf(const ServerLog::Value& value) {
  if (const auto* n = std::get_if<int64_t>(&value)) return absl::StrCat(*n);
  if (const auto* x = std::get_if<double>(&value)) return absl::StrFormat("%.3f", *x);
  return Word(std::get<std::string>(value));
}

}  // namespace

ServerLog::ServerLog(LogLevel least, bool json, Sink sink)
    : least_(least), json_(json), sink_(std::move(sink)) {}

void ServerLog::Write(LogLevel level, std::string_view event, const Fields& fields) {
  if (level < least_) return;
  const std::string time =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  std::string line;
  if (json_) {
    Json object = {{"time", time}, {"level", NameOf(level)}, {"event", std::string(event)}};
    for (const auto& [key, value] : fields) {
      std::visit([&, k = std::string(key)](const auto& v) { object[k] = v; }, value);
    }
    line = Dump(object);
  } else {
    line = absl::StrCat(time, " ", NameOf(level), " ", std::string(event));
    for (const auto& [key, value] : fields) {
      absl::StrAppend(&line, " ", std::string(key), "=", TextOf(value));
    }
  }
  line += '\n';
  std::lock_guard lock(mutex_);
  sink_(line);
}

void ServerLog::Message(LogLevel level, std::string_view text) {
  Write(level, "message", {{"text", std::string(text)}});
}

}  // namespace trine::server
