// What the server has done, for Prometheus. Counters and histograms never go down. Thread-safe.
#ifndef TRINE_TOOLS_SERVER_SERVICE_METRICS_H_
#define TRINE_TOOLS_SERVER_SERVICE_METRICS_H_

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

// Times in seconds, in buckets that double.
class Histogram {
 public:
  void Add(double seconds);
  void Append(std::string_view name, std::string_view help, std::string* out) const;
  uint64_t count() const { return count_; }
  double sum() const { return sum_; }

  static constexpr size_t kBuckets = 20;
  static double Limit(size_t bucket);  // 0.5 ms to 262 s

 private:
  std::array<uint64_t, kBuckets> counts_{};  // of each bucket alone
  uint64_t count_ = 0;
  double sum_ = 0;
};

// How a request ended.
struct RequestEnd {
  std::string endpoint;  // the route, not what was sent
  int status = 200;
  double seconds = 0;
  bool work = true;  // else somebody only looked
};

// What one request that generates has taken.
struct GenerationCounts {
  int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  double queue_seconds = 0;
  double first_token_seconds = -1;     // from its arrival; -1: there was none
  double between_tokens_seconds = -1;  // on average
};

class Metrics {
 public:
  void Ended(const RequestEnd& end);
  void Generated(const GenerationCounts& counts);
  void Tokens(int64_t n);  // generated, as they come
  void Prompt(int64_t read, int64_t cached);
  void Embedded(int64_t tokens);
  void Cancelled();

  struct Totals {
    uint64_t completed = 0, failed = 0, cancelled = 0;
    uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, embedded_tokens = 0;
  };
  Totals totals() const;

  // In Prometheus' text format. Others append theirs.
  std::string Text() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;  // by endpoint and status
  Totals totals_;
  Histogram request_time_, queue_time_, first_token_time_, token_time_;
};

// "# HELP", "# TYPE" and one line without labels.
void AppendMetric(std::string_view name, std::string_view type, std::string_view help, double value,
                  std::string* out);
// The same with several lines, each with its labels: "tier=\"cpu\"".
struct LabelledValue {
  std::string labels;
  double value;
};
void AppendMetric(std::string_view name, std::string_view type, std::string_view help,
                  const std::vector<LabelledValue>& values, std::string* out);
// A label's value between quotes.
std::string LabelValue(std::string_view text);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_SERVICE_METRICS_H_
