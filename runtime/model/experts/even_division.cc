#include "runtime/model/experts/even_division.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace trine {

void DivideEvenly(std::span<const int32_t> ids, int64_t part, int64_t whole, bool home,
                  int32_t none, int32_t* out) {
  std::vector<int64_t> tokens(static_cast<size_t>(whole));
  for (const int32_t id : ids) ++tokens[static_cast<size_t>(id)];
  std::vector<size_t> chosen;
  for (size_t e = 0; e < tokens.size(); ++e) {
    if (tokens[e] != 0) chosen.push_back(e);
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](size_t a, size_t b) { return tokens[a] > tokens[b]; });
  std::vector<bool> at_home(tokens.size());
  int64_t seen = 0, taken = 0;  // choices of the experts looked at, and of those that home gets
  for (const size_t e : chosen) {
    seen += tokens[e];
    // Home gets the expert if that brings its part of the choices closer to what it should be.
    if ((2 * taken + tokens[e]) * whole > 2 * seen * part) continue;
    at_home[e] = true;
    taken += tokens[e];
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    out[i] = at_home[static_cast<size_t>(ids[i])] == home ? ids[i] : none;
  }
}

}  // namespace trine
