// Passes errors across the ABI: a status and a sentence, never an exception.
#ifndef TRINE_SDK_STATUS_H_
#define TRINE_SDK_STATUS_H_

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "trine/backend.h"

namespace trine::sdk {

// Writes the sentence, cut to fit, and returns the status. `err` may be null.
inline trine_status Fail(trine_error* err, trine_status status, const std::string& message) {
  if (err != nullptr) std::snprintf(err->message, sizeof(err->message), "%s", message.c_str());
  return status;
}

// Runs `body`, which returns trine_status, and turns an exception into a status. Wrap the body of
// every entry point that can allocate.
template <class Body>
trine_status Guard(trine_error* err, Body body) noexcept {
  const auto say = [err](trine_status status, const char* message) {
    if (err != nullptr) std::snprintf(err->message, sizeof(err->message), "%s", message);
    return status;
  };
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return say(TRINE_RESOURCE_EXHAUSTED, "out of memory");
  } catch (const std::exception& e) {
    return say(TRINE_INTERNAL, e.what());
  } catch (...) {
    return say(TRINE_INTERNAL, "unexpected exception");
  }
}

// Copies `value` to a struct of the caller's, but no more bytes than the struct_size that the
// caller has set. Keeps that struct_size.
template <class T>
void WriteOut(T* out, T value) {
  const uint32_t size = out->struct_size;
  value.struct_size = size;
  std::memcpy(out, &value, std::min<size_t>(size, sizeof(T)));
}

// Reads a caller's struct of any version. Members that the caller did not know are 0.
template <class T>
T ReadIn(const T* in) {
  T value{};
  std::memcpy(&value, in, std::min<size_t>(in->struct_size, sizeof(T)));
  return value;
}

// Returns element i of an array whose elements may be longer or shorter than T.
template <class T>
T At(const T* array, uint32_t stride, size_t i) {
  T value{};
  std::memcpy(&value, reinterpret_cast<const char*>(array) + i * stride,
              std::min<size_t>(stride, sizeof(T)));
  return value;
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_STATUS_H_
