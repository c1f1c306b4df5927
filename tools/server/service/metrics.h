// Counts what the server has done, for Prometheus. Counters and histograms never go down. Metrics
// is thread-safe; Histogram is not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trine::server {

// Counts times, in seconds, in buckets whose limits double.
class Histogram {
 public:
  void Add(double seconds);
  void Append(std::string_view name, std::string_view help, std::string* out) const;

  static constexpr size_t kBuckets = 20;
  static double Limit(size_t bucket);  // 0.5 ms to 262 s

 private:
  std::array<uint64_t, kBuckets> counts_{};  // times in each bucket alone, not cumulative
  uint64_t count_ = 0;
  double sum_ = 0;
};

// The end of a request.
struct RequestEnd {
  std::string endpoint;  // the name of the route, not the path that was sent
  int status = 200;
  double seconds = 0;
  bool work = true;  // false: the request only read something
};

// The times of one request that generates.
struct GenerationCounts {
  double queue_seconds = 0;
  double first_token_seconds = -1;     // counted from the request's arrival; -1: no token
  double between_tokens_seconds = -1;  // the average; -1: unknown
};

class Metrics {
 public:
  void Ended(const RequestEnd& end);
  void Generated(const GenerationCounts& counts);
  void Tokens(int64_t n);  // counts generated tokens as they come
  void Prompt(int64_t read, int64_t cached);
  void Embedded(int64_t tokens);

  struct Totals {
    uint64_t completed = 0, failed = 0, cancelled = 0;
    uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, embedded_tokens = 0;
  };
  Totals totals() const;

  // Returns all metrics in Prometheus' text format. Callers append more metrics.
  std::string Text() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;  // by endpoint and status
  Totals totals_;
  Histogram request_time_, queue_time_, first_token_time_, token_time_;
};

// Appends a metric: the lines "# HELP" and "# TYPE", and a line with the value and no labels. It is
// a counter if its name ends in _total, else a gauge.
void AppendMetric(std::string_view name, std::string_view help, double value, std::string* out);
struct LabelledValue {
  std::string labels;  // such as "tier=\"cpu\""
  double value;
};
// Appends a metric with a line for each value.
void AppendMetric(std::string_view name, std::string_view help,
                  const std::vector<LabelledValue>& values, std::string* out);
// Returns `text` as the value of a label: escaped and between quotes.
std::string LabelValue(std::string_view text);

}  // namespace trine::server
