#include "runtime/sampling/sampler_options.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/invalid.h"

namespace trine {
namespace {

constexpr int32_t kMaxWindow = 1 << 20;

struct StageNames {
  SamplerStage stage;
  const char* names[6];  // is printed with the first one
};

constexpr StageNames kStages[] = {
    {SamplerStage::kPenalties, {"penalties"}},
    {SamplerStage::kTopK, {"top_k", "top-k", "topk"}},
    {SamplerStage::kTypicalP, {"typ_p", "typical_p", "typical-p", "typ-p", "typical", "typ"}},
    {SamplerStage::kTopP, {"top_p", "top-p", "topp"}},
    {SamplerStage::kMinP, {"min_p", "min-p", "minp"}},
    {SamplerStage::kTemperature, {"temperature", "temp"}},
};

const char* NameOf(SamplerStage stage) {
  for (const StageNames& entry : kStages) {
    if (entry.stage == stage) return entry.names[0];
  }
  return nullptr;
}

absl::Status OutOfRange(const char* name, float value, const char* expected) {
  return Invalid("the sampler's ", name, " is ", value, ": expected ", expected);
}

absl::Status CheckNumbers(const SamplerOptions& o) {
  struct Range {
    const char* name;
    float value, low, high;
    const char* expected;
  };
  const Range ranges[] = {
      {"temp", o.temp, 0.0f, 1e6f, "0 (greedy) to 1e6"},
      {"top_k", static_cast<float>(o.top_k), 0.0f, 2147483648.0f, "0 (off) or more"},
      {"top_p", o.top_p, 0.0f, 1.0f, "0 to 1 (off)"},
      {"min_p", o.min_p, 0.0f, 1.0f, "0 (off) to 1"},
      {"typical_p", o.typical_p, 0.0f, 1.0f, "0 to 1 (off)"},
      {"min_keep", static_cast<float>(o.min_keep), 0.0f, 2147483648.0f, "0 or more"},
      {"repeat_last_n", static_cast<float>(o.repeat_last_n), -1.0f, kMaxWindow,
       "-1 (the whole sequence), 0 (off) or a number of tokens up to 1048576"},
      {"repeat_penalty", o.repeat_penalty, 1e-3f, 1e3f, "0.001 to 1000, where 1 is off"},
      {"frequency_penalty", o.frequency_penalty, -1e3f, 1e3f, "-1000 to 1000, where 0 is off"},
      {"presence_penalty", o.presence_penalty, -1e3f, 1e3f, "-1000 to 1000, where 0 is off"},
      {"mirostat_tau", o.mirostat_tau, 0.0f, 1e3f, "0 to 1000"},
      {"mirostat_eta", o.mirostat_eta, 0.0f, 1.0f, "0 to 1"},
  };
  for (const Range& range : ranges) {
    // Written so that a NaN fails too.
    if (!(range.value >= range.low && range.value <= range.high)) {
      return OutOfRange(range.name, range.value, range.expected);
    }
  }
  if (o.mirostat != 0 && o.mirostat != 2) {
    return Invalid("the sampler's mirostat is ", o.mirostat,
                   ": expected 0 (off) or 2 (mirostat 2.0)");
  }
  return absl::OkStatus();
}

absl::Status CheckBias(const SamplerOptions& options, int32_t vocab_size) {
  std::vector<int32_t> banned;
  for (const LogitBias& entry : options.logit_bias) {
    if (entry.token < 0 || entry.token >= vocab_size) {
      return Invalid("the sampler's logit_bias names token ", entry.token,
                     ": expected a token from 0 to ", vocab_size - 1);
    }
    if (std::isnan(entry.bias)) {
      return Invalid("the sampler's logit_bias for token ", entry.token,
                     " is not a number: expected a number or an infinity");
    }
    if (std::isinf(entry.bias) && entry.bias < 0.0f) banned.push_back(entry.token);
  }
  std::sort(banned.begin(), banned.end());
  banned.erase(std::unique(banned.begin(), banned.end()), banned.end());
  if (static_cast<int64_t>(banned.size()) == vocab_size) {
    return Invalid("the sampler's logit_bias bans all ", vocab_size,
                   " tokens: expected one to be left");
  }
  return absl::OkStatus();
}

absl::Status CheckStages(const std::vector<SamplerStage>& stages) {
  for (size_t i = 0; i < stages.size(); ++i) {
    const char* const name = NameOf(stages[i]);
    if (name == nullptr) {
      return Invalid("the sampler's stage ", i, " is unknown (", static_cast<int>(stages[i]),
                     "): expected a value of SamplerStage");
    }
    for (size_t j = 0; j < i; ++j) {
      if (stages[i] != stages[j]) continue;
      return Invalid("the sampler's stage order has ", name, " twice: expected it once");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const SamplerOptions& options, int32_t vocab_size) {
  if (vocab_size < 1 || vocab_size > kMaxVocabSize) {
    return Invalid("the vocabulary has ", vocab_size, " tokens: the sampler expects 1 to ",
                   kMaxVocabSize);
  }
  if (absl::Status status = CheckNumbers(options); !status.ok()) return status;
  if (absl::Status status = CheckStages(options.stages); !status.ok()) return status;
  return CheckBias(options, vocab_size);
}

absl::StatusOr<std::vector<SamplerStage>> ParseStageOrder(std::string_view text) {
  std::vector<SamplerStage> stages;
  const absl::string_view view(text.data(), text.size());
  if (absl::StripAsciiWhitespace(view).empty()) return stages;
  for (absl::string_view part : absl::StrSplit(view, ';')) {
    const std::string name = absl::AsciiStrToLower(absl::StripAsciiWhitespace(part));
    const auto has_name = [&](const StageNames& stage) {
      return std::ranges::any_of(
          stage.names, [&](const char* known) { return known != nullptr && name == known; });
    };
    const auto* const entry = std::ranges::find_if(kStages, has_name);
    if (entry == std::end(kStages)) {
      return Invalid("the sampler's stage order has '", name,
                     "': expected penalties, top_k, typ_p, top_p, min_p or temperature, "
                     "separated by semicolons");
    }
    stages.push_back(entry->stage);
  }
  if (absl::Status status = CheckStages(stages); !status.ok()) return status;
  return stages;
}

std::string StageOrderText(const std::vector<SamplerStage>& stages) {
  std::string text;
  for (const SamplerStage stage : stages) {
    absl::StrAppend(&text, text.empty() ? "" : ";", NameOf(stage));
  }
  return text;
}

}  // namespace trine
