#include "tools/server/service/metrics.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/absl_view.h"

namespace trine::server {
namespace {

// Prints whole numbers without a fraction, which people read more easily; Prometheus reads both.
std::string Number(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return absl::StrFormat("%.0f", value);
  return absl::StrFormat("%.9g", value);
}

const char* TypeOf(std::string_view name) { return name.ends_with("_total") ? "counter" : "gauge"; }

void AppendHead(std::string_view name, std::string_view type, std::string_view help,
                std::string* out) {
  absl::StrAppend(out, "# HELP ", AbslView(name), " ", AbslView(help), "\n# TYPE ", AbslView(name),
                  " ", AbslView(type), "\n");
}

}  // namespace

double Histogram::Limit(size_t bucket) { return 0.0005 * std::exp2(static_cast<double>(bucket)); }

void Histogram::Add(double seconds) {
  ++count_;
  sum_ += seconds;
  for (size_t i = 0; i < kBuckets; ++i) {
    if (seconds > Limit(i)) continue;
    ++counts_[i];
    return;
  }
}

void Histogram::Append(std::string_view name, std::string_view help, std::string* out) const {
  AppendHead(name, "histogram", help, out);
  uint64_t so_far = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    so_far += counts_[i];
    absl::StrAppend(out, AbslView(name), "_bucket{le=\"", Number(Limit(i)), "\"} ", so_far, "\n");
  }
  absl::StrAppend(out, AbslView(name), "_bucket{le=\"+Inf\"} ", count_, "\n", AbslView(name),
                  "_sum ", Number(sum_), "\n", AbslView(name), "_count ", count_, "\n");
}

void Metrics::Ended(const RequestEnd& end) {
  std::lock_guard lock(mutex_);
  ++requests_[{end.endpoint, end.status}];
  if (end.status == 499) ++totals_.cancelled;
  if (!end.work) return;
  request_time_.Add(end.seconds);
  if (end.status < 400) ++totals_.completed;
  if (end.status >= 400 && end.status != 499) ++totals_.failed;
}

void Metrics::Generated(const GenerationCounts& counts) {
  std::lock_guard lock(mutex_);
  queue_time_.Add(counts.queue_seconds);
  if (counts.first_token_seconds >= 0) first_token_time_.Add(counts.first_token_seconds);
  if (counts.between_tokens_seconds >= 0) token_time_.Add(counts.between_tokens_seconds);
}

void Metrics::Tokens(int64_t n) {
  std::lock_guard lock(mutex_);
  totals_.generated_tokens += static_cast<uint64_t>(n);
}

void Metrics::Prompt(int64_t read, int64_t cached) {
  std::lock_guard lock(mutex_);
  totals_.prompt_tokens += static_cast<uint64_t>(read);
  totals_.cached_tokens += static_cast<uint64_t>(cached);
}

void Metrics::Embedded(int64_t tokens) {
  std::lock_guard lock(mutex_);
  totals_.embedded_tokens += static_cast<uint64_t>(tokens);
}

Metrics::Totals Metrics::totals() const {
  std::lock_guard lock(mutex_);
  return totals_;
}

std::string LabelValue(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

void AppendMetric(std::string_view name, std::string_view help,
                  const std::vector<LabelledValue>& values, std::string* out) {
  AppendHead(name, TypeOf(name), help, out);
  for (const LabelledValue& v : values) {
    absl::StrAppend(out, AbslView(name), "{", v.labels, "} ", Number(v.value), "\n");
  }
}

void AppendMetric(std::string_view name, std::string_view help, double value, std::string* out) {
  AppendHead(name, TypeOf(name), help, out);
  absl::StrAppend(out, AbslView(name), " ", Number(value), "\n");
}

std::string Metrics::Text() const {
  std::string out;
  std::lock_guard lock(mutex_);
  std::vector<LabelledValue> requests;
  for (const auto& [what, n] : requests_) {
    requests.push_back(
        {absl::StrCat("endpoint=", LabelValue(what.first), ",status=\"", what.second, "\""),
         static_cast<double>(n)});
  }
  const auto counter = [&](std::string_view name, std::string_view help, uint64_t value) {
    AppendMetric(name, help, static_cast<double>(value), &out);
  };
  AppendMetric("trine_requests_total", "Requests that were answered.", requests, &out);
  counter("trine_requests_cancelled_total", "Requests whose clients left.", totals_.cancelled);
  counter("trine_prompt_tokens_total", "Tokens of prompts, cached ones among them.",
          totals_.prompt_tokens);
  counter("trine_cached_tokens_total", "Tokens of prompts that need not be read again.",
          totals_.cached_tokens);
  counter("trine_generated_tokens_total", "Tokens that were written.", totals_.generated_tokens);
  counter("trine_embedded_tokens_total", "Tokens of texts that were embedded.",
          totals_.embedded_tokens);
  request_time_.Append("trine_request_seconds", "From a request's arrival to its answer's end.",
                       &out);
  queue_time_.Append("trine_queue_seconds", "A request's wait for a place.", &out);
  first_token_time_.Append("trine_first_token_seconds", "From arrival to the first token.", &out);
  token_time_.Append("trine_token_seconds", "Between two tokens of one answer, on average.", &out);
  return out;
}

}  // namespace trine::server
