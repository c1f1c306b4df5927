// Decides by the number of tokens where work runs: at home, which is the device that has its
// weights, or on a helper (docs/dispatch.md). The functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trine {

// Says which passes may leave the devices on which their layers are placed: --dispatch.
struct DispatchMode {
  bool on = true;  // false: none
  // true: only passes that read a prompt, which have more tokens than there may be sequences.
  // nullopt: true if the user placed the layers, false if the planner did.
  std::optional<bool> prompts_only;
  // Passes of so many tokens or more leave, and no others. 0: passes leave where that is faster.
  int64_t from_tokens = 0;
};

// Parses "auto", "prompts", "off" or a number of tokens. Returns INVALID_ARGUMENT for any other
// text.
absl::StatusOr<DispatchMode> ParseDispatch(const std::string& text);

// What Decide goes by. `at_least` comes first, then `from_tokens`, then the limits of operations,
// then times.
struct SizeRule {
  // While a device has not been measured, work of fewer operations than `small_flops` stays at
  // home, and work of more than `large_flops` goes to the helper. Guessed times decide in between.
  double small_flops = 1e6;
  double large_flops = 10e9;
  double margin = 1.1;  // how many times faster the helper must be
  // Passes of so many tokens or more go to the helper, and others stay at home. 0: times decide.
  int64_t from_tokens = 0;
  int64_t at_least = 1;  // passes of fewer tokens stay at home, whatever the times are
};

// The times of some work at one number of tokens.
struct SizedWork {
  double flops = 0;
  double home_ns = 0;     // on the device that has the weights
  double away_ns = 0;     // on the helper, with the time of moving everything that it needs
  bool measured = false;  // both times come from measured costs
};

struct SizeDecision {
  bool away = false;   // it runs on the helper
  std::string reason;  // for people
};

// Decides whether work of this many tokens runs on the helper.
SizeDecision Decide(const SizeRule& rule, int64_t tokens, const SizedWork& work);

// Returns the numbers of tokens at which classes of passes begin, ascending and at most
// `max_tokens`: powers of two, rule.from_tokens and rule.at_least. Passes of a class take the same
// route.
std::vector<int64_t> TokenClasses(const SizeRule& rule, int64_t max_tokens);

// Chooses a route for each pass by the class of its tokens. Near the border of two classes it keeps
// the route of the pass before, so that small changes of the size do not change the route each
// time. The same sequence of passes always takes the same routes. Not thread-safe.
class RouteSwitch {
 public:
  RouteSwitch() = default;  // always chooses route 0
  // `classes`: as TokenClasses returns them. `routes`: the index of the route of each class.
  // `band`: a route is kept until a pass is beyond the border of its classes by this factor; 1: it
  // is never kept. `at_least`: a pass of fewer tokens, and each pass of one token, takes the route
  // of its class in any case, and does not count as the pass before.
  RouteSwitch(std::vector<int64_t> classes, std::vector<size_t> routes, double band,
              int64_t at_least = 1);

  // Returns the index of the route for the next pass.
  size_t Choose(int64_t tokens);

 private:
  size_t RouteOf(double tokens) const;

  std::vector<int64_t> classes_ = {1};
  std::vector<size_t> routes_ = {0};
  double band_ = 1;
  int64_t at_least_ = 2;
  size_t current_ = 0;
};

}  // namespace trine
