#include "dispatch/cost/size_rule.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace trine {
namespace {

std::string Milliseconds(double ns) { return absl::StrFormat("%.3g ms", ns / 1e6); }

}  // namespace

absl::StatusOr<DispatchMode> ParseDispatch(const std::string& text) {
  DispatchMode mode;
  mode.prompts_only = text == "prompts";
  if (text == "auto" || text == "prompts") return mode;
  mode.on = text != "off";
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  if (!mode.on || (digits && absl::SimpleAtoi(text, &mode.from_tokens) && mode.from_tokens > 0)) {
    return mode;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is none of auto, prompts, off and a number of tokens"));
}

SizeDecision Decide(const SizeRule& rule, int64_t tokens, const SizedWork& work) {
  if (tokens < rule.at_least) {
    return {false, absl::StrCat("only prompts may leave: under ", rule.at_least, " tokens")};
  }
  if (rule.from_tokens > 0) {
    const bool away = tokens >= rule.from_tokens;
    return {away, absl::StrCat(away ? "at least " : "fewer than ", rule.from_tokens, " tokens")};
  }
  if (!work.measured && work.flops < rule.small_flops) {
    return {false, absl::StrFormat("under %g MFLOP", rule.small_flops / 1e6)};
  }
  if (!work.measured && work.flops > rule.large_flops) {
    return {true, absl::StrFormat("over %g GFLOP", rule.large_flops / 1e9)};
  }
  const bool away = work.away_ns * rule.margin < work.home_ns;
  return {away, absl::StrCat(Milliseconds(work.home_ns), " where its weights are, ",
                             Milliseconds(work.away_ns), " elsewhere, ",
                             work.measured ? "measured" : "guessed")};
}

std::vector<int64_t> TokenClasses(const SizeRule& rule, int64_t max_tokens) {
  std::vector<int64_t> classes;
  for (int64_t begin = 1; begin <= max_tokens; begin *= 2) classes.push_back(begin);
  for (const int64_t begin : {rule.from_tokens, rule.at_least}) {
    if (begin > 0 && begin <= max_tokens) classes.push_back(begin);
  }
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  return classes;
}

RouteSwitch::RouteSwitch(std::vector<int64_t> classes, std::vector<size_t> routes, double band,
                         int64_t at_least)
    : classes_(std::move(classes)),
      routes_(std::move(routes)),
      band_(band),
      at_least_(std::max<int64_t>(at_least, 2)),
      current_(routes_.front()) {}

size_t RouteSwitch::RouteOf(double tokens) const {
  size_t c = classes_.size() - 1;
  while (c > 0 && static_cast<double>(classes_[c]) > tokens) --c;
  return routes_[c];
}

size_t RouteSwitch::Choose(int64_t tokens) {
  const auto n = static_cast<double>(tokens);
  // A small pass takes the route of its class and does not change current_. So a session that
  // writes one token at a time gets its best route, and larger passes in between keep theirs.
  if (tokens < at_least_) return RouteOf(n);
  const bool kept = RouteOf(n / band_) == current_ || RouteOf(n * band_) == current_;
  if (!kept) current_ = RouteOf(n);
  return current_;
}

}  // namespace trine
