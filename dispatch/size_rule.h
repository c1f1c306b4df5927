// Where work of some size runs: on the device that has its weights, or on another one that may help
// it. Pure.
#ifndef TRINE_DISPATCH_SIZE_RULE_H_
#define TRINE_DISPATCH_SIZE_RULE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace trine {

// Whether passes may leave the devices that their layers are on.
struct DispatchMode {
  bool on = true;
  int64_t from_tokens = 0;  // so many make a pass do so; 0: where that is predicted to be faster
};

// "auto", "off" or a number of tokens. INVALID_ARGUMENT says so.
absl::StatusOr<DispatchMode> ParseDispatch(const std::string& text);

struct SizeRule {
  // What decides while a device has not been measured. Between the two its guessed times do.
  double small_flops = 1e6;
  double large_flops = 10e9;
  double margin = 1.1;  // so many times faster the other one must be
  int64_t from_tokens =
      0;  // passes of so many tokens go to the other one, whatever it takes; 0: no
};

// Some work, at one number of tokens.
struct SizedWork {
  double flops = 0;
  double home_ns = 0;  // where the weights are
  double away_ns = 0;  // on the other device, with all that is moved for it
  bool measured = false;
};

struct SizeDecision {
  bool away = false;
  std::string reason;
};

SizeDecision Decide(const SizeRule& rule, int64_t tokens, const SizedWork& work);

// Numbers of tokens at which classes begin: powers of two, and where the rule has a border of its
// own.
std::vector<int64_t> TokenClasses(const SizeRule& rule, int64_t max_tokens);

// Which of several routes passes take, by the class of their tokens. Near the border of two classes
// it stays with the route that the pass before had, so that numbers which go up and down a little
// do not change it each time. The same passes always take the same routes.
class RouteSwitch {
 public:
  RouteSwitch() = default;  // route 0, always
  // A route for each class, which are in order and begin with 1. `band`: how far beyond a border
  // the route is kept; 1: not at all.
  RouteSwitch(std::vector<int64_t> classes, std::vector<size_t> routes, double band);

  size_t Choose(int64_t tokens);

 private:
  size_t RouteOf(double tokens) const;

  std::vector<int64_t> classes_ = {1};
  std::vector<size_t> routes_ = {0};
  double band_ = 1;
  size_t current_ = 0;
};

}  // namespace trine

#endif  // TRINE_DISPATCH_SIZE_RULE_H_
