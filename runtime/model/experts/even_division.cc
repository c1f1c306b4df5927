#include "runtime/model/experts/even_division.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace trine {

EvenDivision::EvenDivision(int64_t part, int64_t whole)
    : part_(part),
      whole_(whole),
      order_(static_cast<size_t>(whole)),
      tokens_(static_cast<size_t>(whole)),
      at_home_(static_cast<size_t>(whole)) {}

void EvenDivision::Choose(std::span<const int32_t> ids) {
  std::fill(tokens_.begin(), tokens_.end(), 0);
  for (const int32_t id : ids) ++tokens_[static_cast<size_t>(id)];
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
    const int64_t of_a = tokens_[static_cast<size_t>(a)], of_b = tokens_[static_cast<size_t>(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  });
  for (const int32_t expert : order_) {
    const auto e = static_cast<size_t>(expert);
    owed_ += tokens_[e] * part_;
    // Home gets the expert if that brings its part of the choices closer to what it should be.
    at_home_[e] = tokens_[e] != 0 && 2 * owed_ >= tokens_[e] * whole_;
    if (at_home_[e]) owed_ -= tokens_[e] * whole_;
  }
  // A prompt with an expert of many tokens is not made up for: that would take many single tokens.
  owed_ = std::clamp(owed_, -whole_, whole_);
}

void EvenDivision::Divide(std::span<const int32_t> ids, bool home, int32_t none, int32_t* out) {
  const Call call = home ? Call::kHome : Call::kRest;
  if (chosen_by_ == Call::kNone || chosen_by_ == call) {
    Choose(ids);
    chosen_by_ = call;
  } else {
    chosen_by_ = Call::kNone;
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    out[i] = at_home_[static_cast<size_t>(ids[i])] == home ? ids[i] : none;
  }
}

}  // namespace trine
