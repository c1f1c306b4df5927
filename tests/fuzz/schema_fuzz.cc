// Parses any bytes as a JSON Schema: it is refused with one line, or walked without a dead end.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"
#include "tests/fuzz/constraint_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const vocabulary = new trine::ConstraintVocabulary(trine::FuzzVocabulary());
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto constraint = trine::Constraint::FromJsonSchema(text, *vocabulary);
  if (!constraint.ok()) {
    trine::Require(!constraint.status().message().empty());
    return 0;
  }
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const std::string answer = trine::Walk(*constraint, seed);
    trine::Require(answer.empty() || nlohmann::json::accept(answer));
  }
  return 0;
}
