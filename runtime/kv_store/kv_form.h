// How a block lies in a store: as it is, or with fewer bits (docs/kv.md).
#ifndef TRINE_RUNTIME_KV_STORE_KV_FORM_H_
#define TRINE_RUNTIME_KV_STORE_KV_FORM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace trine {

// Written into files: the numbers never change. The others than kRaw are quant::Type's.
enum class KvForm : uint32_t { kRaw = 0, kQ4_0 = 16, kQ8_0 = 20, kMxfp4 = 48 };

inline constexpr KvForm kAllKvForms[] = {KvForm::kRaw, KvForm::kQ4_0, KvForm::kQ8_0,
                                         KvForm::kMxfp4};

inline bool IsKvForm(uint32_t number) {
  for (const KvForm form : kAllKvForms) {
    if (static_cast<uint32_t>(form) == number) return true;
  }
  return false;
}

inline const char* KvFormName(KvForm form) {
  switch (form) {
    case KvForm::kRaw:
      return "raw";
    case KvForm::kQ4_0:
      return "q4_0";
    case KvForm::kQ8_0:
      return "q8_0";
    case KvForm::kMxfp4:
      return "mxfp4";
  }
  return "?";
}

inline std::optional<KvForm> ParseKvForm(std::string_view name) {
  for (const KvForm form : kAllKvForms) {
    if (name == KvFormName(form)) return form;
  }
  return std::nullopt;
}

// A block's bytes in one of the forms. Made once, then read by any thread.
struct KvPayload {
  KvPayload() = default;
  // The bytes are whatever the memory holds.
  KvPayload(KvForm the_form, size_t bytes)
      : form(the_form), size(bytes), data(std::make_unique_for_overwrite<std::byte[]>(bytes)) {}

  std::span<const std::byte> bytes() const { return {data.get(), size}; }
  std::span<std::byte> bytes() { return {data.get(), size}; }

  KvForm form = KvForm::kRaw;
  size_t size = 0;
  std::unique_ptr<std::byte[]> data;  // aligned for any type
};

}  // namespace trine

#endif  // TRINE_RUNTIME_KV_STORE_KV_FORM_H_
