#include "tools/cli/sampling_arguments.h"

#include <limits>
#include <random>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace trine {
namespace {

// TOKEN, a sign, the bias.
absl::StatusOr<LogitBias> ParseBias(const std::string& text) {
  const size_t sign = text.find_first_of("+-", 1);
  LogitBias bias;
  if (sign == std::string::npos || !absl::SimpleAtoi(text.substr(0, sign), &bias.token) ||
      !absl::SimpleAtof(text.substr(sign + (text[sign] == '+' ? 1 : 0)), &bias.bias)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "logit bias '", text, "': write a token id and what to add, such as 42+1.5 or 42-inf"));
  }
  return bias;
}

}  // namespace

void AddSamplingOptions(CLI::App* command, SamplingArguments* a) {
  SamplerOptions& o = a->options;
  a->order = StageOrderText(o.stages);
  command
      ->add_option("-s,--seed", a->seed, "Seed of the sampler; -1: another one each time")
      // What is larger than the largest is read as that.
      ->check(CLI::Range(int64_t{-1}, std::numeric_limits<int64_t>::max() - 1))
      ->capture_default_str();
  command->add_option("--temp", o.temp, "Temperature; 0: always the likeliest token")
      ->capture_default_str();
  command->add_option("--top-k", o.top_k, "Keep the k likeliest tokens; 0: all")
      ->capture_default_str();
  command
      ->add_option("--top-p", o.top_p, "Keep the likeliest tokens up to this probability; 1: all")
      ->capture_default_str();
  command->add_option("--min-p", o.min_p, "Drop tokens below this share of the best one; 0: none")
      ->capture_default_str();
  command->add_option("--typical", o.typical_p, "Locally typical sampling; 1: off")
      ->capture_default_str();
  command
      ->add_option("--repeat-last-n", o.repeat_last_n,
                   "Tokens the penalties look back on; 0: none, -1: all")
      ->capture_default_str();
  command->add_option("--repeat-penalty", o.repeat_penalty, "Divides repeated logits; 1: off")
      ->capture_default_str();
  command->add_option("--presence-penalty", o.presence_penalty, "Taken off once per token seen")
      ->capture_default_str();
  command->add_option("--frequency-penalty", o.frequency_penalty, "Taken off for each time seen")
      ->capture_default_str();
  command->add_option("--mirostat", o.mirostat, "0: off, 2: mirostat 2.0")->capture_default_str();
  command->add_option("--mirostat-lr", o.mirostat_eta, "Mirostat's learning rate")
      ->capture_default_str();
  command->add_option("--mirostat-ent", o.mirostat_tau, "Mirostat's target surprise")
      ->capture_default_str();
  command->add_option("-l,--logit-bias", a->logit_bias,
                      "TOKEN+BIAS or TOKEN-BIAS, such as 42-inf; may be repeated");
  command->add_option("--samplers", a->order, "The stages in their order, separated by ';'")
      ->capture_default_str();
}

absl::StatusOr<SamplerOptions> MakeSamplerOptions(const SamplingArguments& a) {
  SamplerOptions options = a.options;
  options.seed = a.seed >= 0 ? static_cast<uint64_t>(a.seed) : std::random_device()();
  auto stages = ParseStageOrder(a.order);
  if (!stages.ok()) return stages.status();
  options.stages = *std::move(stages);
  for (const std::string& text : a.logit_bias) {
    const auto bias = ParseBias(text);
    if (!bias.ok()) return bias.status();
    options.logit_bias.push_back(*bias);
  }
  return options;
}

}  // namespace trine
