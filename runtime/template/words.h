// Sentences for statuses. absl::StrCat does not take std::string_view everywhere: an Abseil built
// for C++14 has a string view of its own.
#ifndef TRINE_RUNTIME_TEMPLATE_WORDS_H_
#define TRINE_RUNTIME_TEMPLATE_WORDS_H_

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"

namespace trine::jinja {

template <class... Parts>
std::string Words(const Parts&... parts) {
  std::string text;
  const auto add = [&text](const auto& part) {
    using Part = std::decay_t<decltype(part)>;
    if constexpr (std::is_arithmetic_v<Part>) {
      text += std::to_string(part);
    } else if constexpr (std::is_convertible_v<Part, std::string_view>) {
      text += std::string_view(part);
    } else {
      text.append(part.data(), part.size());
    }
  };
  (add(parts), ...);
  return text;
}

// INVALID_ARGUMENT: the template, or what it was given, is not as it should be.
template <class... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(Words(parts...));
}

// RESOURCE_EXHAUSTED: a limit was reached.
template <class... Parts>
absl::Status TooMuch(const Parts&... parts) {
  return absl::ResourceExhaustedError(Words(parts...));
}

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_WORDS_H_
