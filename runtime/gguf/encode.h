// Numbers, strings and values as the bytes of a GGUF file.
#ifndef TRINE_RUNTIME_GGUF_ENCODE_H_
#define TRINE_RUNTIME_GGUF_ENCODE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "runtime/gguf/format.h"
#include "runtime/gguf/metadata.h"

namespace trine::gguf {

template <class T>
void AppendNumber(T number, std::string* out) {
  static_assert(std::is_arithmetic_v<T>);
  out->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

inline void AppendString(std::string_view text, std::string* out) {
  AppendNumber<uint64_t>(text.size(), out);
  out->append(text);
}

inline void AppendType(ValueType type, std::string* out) {
  AppendNumber(static_cast<uint32_t>(type), out);
}

// Without its type. False when the value does not hold what its type says.
bool AppendValue(const Value& value, std::string* out);

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_ENCODE_H_
