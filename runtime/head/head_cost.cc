#include "runtime/head/head_cost.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "runtime/head/branch_choice_head.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTokens = 16, kRounds = 9, kRowsOfARound = 100;

double MicrosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

absl::StatusOr<double> TokenMicroseconds(Engine* engine, const std::vector<int32_t>& prompt) {
  const std::unique_ptr<Sequence> sequence = engine->NewSequence();
  Sequence* const pointers[] = {sequence.get()};
  if (absl::Status s = sequence->Append(prompt); !s.ok()) return s;
  if (absl::Status s = engine->Evaluate(pointers); !s.ok()) return s;
  std::vector<double> times;
  for (int i = 0; i < kTokens && sequence->size() < engine->context(); ++i) {
    const std::span<const float> logits = sequence->logits();
    const auto best =
        static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    if (absl::Status s = sequence->Append(std::span(&best, 1)); !s.ok()) return s;
    const Clock::time_point begin = Clock::now();
    if (absl::Status s = engine->Evaluate(pointers); !s.ok()) return s;
    times.push_back(MicrosecondsSince(begin));
  }
  return times.empty() ? 0.0 : Median(std::move(times));
}

double HeadMicroseconds(const Head& head, std::vector<float> row) {
  std::vector<double> times;
  volatile double sink = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kRowsOfARound; ++i) {
      row[0] = static_cast<float>(i);
      sink = head.linear.LogOdds(row);
    }
    times.push_back(MicrosecondsSince(begin) / kRowsOfARound);
  }
  static_cast<void>(sink);
  return Median(std::move(times));
}

}  // namespace

absl::StatusOr<HeadCost> MeasureHeadCost(Engine* engine, const Head& head,
                                         const std::string& text) {
  const auto prompt = EncodePrompt(*engine, text, head.form);
  if (!prompt.ok()) return prompt.status();
  const auto token = TokenMicroseconds(engine, *prompt);
  if (!token.ok()) return token.status();
  HeadCost cost;
  cost.token_ms = *token / 1000;
  cost.head_us =
      HeadMicroseconds(head, std::vector<float>(static_cast<size_t>(head.model.n_embd), 0.5f));
  return cost;
}

}  // namespace trine
