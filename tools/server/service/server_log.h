// The server's log: one line for each event, as text for people or as JSON for programs.
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace trine::server {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

class ServerLog {
 public:
  using Value = std::variant<int64_t, double, std::string>;
  using Fields = std::vector<std::pair<std::string_view, Value>>;
  using Sink = std::function<void(const std::string& line)>;  // `line` ends in a newline

  ServerLog(LogLevel least, bool json, Sink sink);

  // Writes a line such as "2026-01-31T12:00:00.123Z info request method=POST path=/v1/models
  // status=200", or a JSON object with time, level, event and the fields.
  void Write(LogLevel level, std::string_view event, const Fields& fields);
  void Message(LogLevel level, std::string_view text);

 private:
  const LogLevel least_;
  const bool json_;
  std::mutex mutex_;
  const Sink sink_;  // guarded by mutex_
};

}  // namespace trine::server
