// Divides the experts that the tokens of a pass chose between two devices that both have all
// experts. Says nothing about which experts are chosen often: every device reads every expert in
// the same memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trine {

// Gives home `part` of `whole` of the choices, as whole experts: the choices of one expert stay
// together, because a device reads an expert's weights once for all of its tokens. Experts with
// many and with few tokens are divided alike. What home got too little or too much of is made up
// for by the next passes, so that home gets its part of single tokens as well.
class EvenDivision {
 public:
  EvenDivision(int64_t part, int64_t whole);

  // Writes the ids of home or, without `home`, of the other device; the rest of `out` are `none`. A
  // pass is divided by the first of its two calls, which have different `home`. Allocates nothing.
  // REQUIRES: each id is at least 0 and less than `whole`.
  void Divide(std::span<const int32_t> ids, bool home, int32_t none, int32_t* out);

 private:
  void Choose(std::span<const int32_t> ids);

  int64_t part_, whole_;
  int64_t owed_ = 0;  // choices that home should have had, times `whole_`
  enum class Call { kNone, kHome, kRest } chosen_by_ = Call::kNone;
  std::vector<int32_t> order_;   // experts; those with the most tokens first
  std::vector<int64_t> tokens_;  // of each expert
  std::vector<bool> at_home_;
};

}  // namespace trine
