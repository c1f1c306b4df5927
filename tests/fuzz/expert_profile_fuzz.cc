// Reads any text as a profile of experts. It is refused with a message, or read; then it is the
// same after being written and read again, and its shares make sense.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "runtime/model/experts/expert_profile.h"

namespace trine {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void Read(std::string_view text) {
  auto profile = ParseExpertProfile(text);
  if (!profile.ok()) return Require(!profile.status().message().empty());
  const std::string written = FormatExpertProfile(*profile);
  const auto again = ParseExpertProfile(written);
  Require(again.ok() && again->model == profile->model);
  Require(again->counts.hits == profile->counts.hits);
  Require(CheckFits(*again, profile->model).ok());
  for (const auto& layer : profile->counts.hits) {
    const double share = HitShare(layer, 1);
    Require(share >= 0 && share <= 1);
  }
  const double top = TopTenthShare(profile->counts);
  Require(top >= 0 && top <= 1);
  profile->Add(again->counts);
  Require(ParseExpertProfile(FormatExpertProfile(*profile)).ok());
}

}  // namespace
}  // namespace trine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  trine::Read({reinterpret_cast<const char*>(data), size});
  return 0;
}
