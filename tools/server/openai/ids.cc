#include "tools/server/openai/ids.h"

#include "absl/random/random.h"

namespace trine::server {

std::string RandomId(std::string_view prefix, size_t letters) {
  constexpr std::string_view kAlphabet =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  thread_local absl::BitGen random;
  std::string id(prefix);
  for (size_t i = 0; i < letters; ++i) {
    id.push_back(kAlphabet[absl::Uniform<size_t>(random, 0, kAlphabet.size())]);
  }
  return id;
}

}  // namespace trine::server
