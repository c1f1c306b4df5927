// Arrays of the ABI's with the wrapper's handles replaced by the plugin's. Elements keep their
// stride, and bytes this host does not know.
#ifndef TRINE_PLUGINS_FAULT_TRANSLATE_H_
#define TRINE_PLUGINS_FAULT_TRANSLATE_H_

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "plugins/fault/faulty_handles.h"

namespace trine::fault {

// The plugin's handle; null stays null.
template <class Handle>
Handle* RealOf(Handle* wrapped) {
  return wrapped == nullptr ? nullptr : Of(wrapped)->handle;
}

template <class T>
class Translated {
 public:
  // `patch(T*)` replaces the handles of one element. An array that is null, or whose elements are
  // shorter than any host's, is handed on for the plugin to refuse.
  template <class Patch>
  Translated(const T* array, uint32_t count, uint32_t stride, Patch patch) : array_(array) {
    if (array == nullptr || count == 0 || stride < sizeof(T)) return;
    bytes_.resize(size_t{count} * stride);
    std::memcpy(bytes_.data(), array, bytes_.size());
    for (uint32_t i = 0; i < count; ++i) {
      std::byte* at = bytes_.data() + size_t{i} * stride;
      T element;
      std::memcpy(&element, at, sizeof(T));
      patch(&element);
      std::memcpy(at, &element, sizeof(T));
    }
  }

  const T* get() const {
    return bytes_.empty() ? array_ : reinterpret_cast<const T*>(bytes_.data());
  }
  // One more at the end, of the same stride.
  void Append(const T& element, uint32_t stride) {
    bytes_.resize(bytes_.size() + stride);
    std::memcpy(bytes_.data() + bytes_.size() - stride, &element, sizeof(T));
  }

 private:
  const T* array_;
  std::vector<std::byte> bytes_;
};

}  // namespace trine::fault

#endif  // TRINE_PLUGINS_FAULT_TRANSLATE_H_
