#include "plugins/device_text.h"

#include <cstring>
#include <type_traits>

#include "nlohmann/json.hpp"

namespace trine {
namespace {

using Json = nlohmann::ordered_json;

std::string UuidText(const uint8_t (&uuid)[16]) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  bool any = false;
  for (uint8_t byte : uuid) {
    any |= byte != 0;
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return any ? text : "";
}

bool ParseUuid(const std::string& text, uint8_t (&uuid)[16]) {
  if (text.empty()) return true;
  if (text.size() != 32) return false;
  for (size_t i = 0; i < 32; ++i) {
    const char c = text[i];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return false;
    uuid[i / 2] = static_cast<uint8_t>(uuid[i / 2] << 4 | digit);
  }
  return true;
}

// Calls visit(key, member) for each member, until one call returns false. Returns the last result.
template <class Info, class Visit>
bool ForEachMember(Info& i, Visit visit) {
  return visit("name", i.name) && visit("tier", i.tier) && visit("flags", i.flags) &&
         visit("numerics", i.numerics) && visit("memory_total", i.memory_total) &&
         visit("memory_free", i.memory_free) &&
         visit("max_allocation_bytes", i.max_allocation_bytes) &&
         visit("max_binding_bytes", i.max_binding_bytes) &&
         visit("buffer_alignment", i.buffer_alignment) &&
         visit("import_alignment", i.import_alignment) && visit("uuid", i.uuid) &&
         visit("pci_id", i.pci_id) && visit("arch", i.arch) && visit("driver", i.driver) &&
         visit("memory_pool", i.memory_pool) && visit("bandwidth_domain", i.bandwidth_domain) &&
         visit("reason", i.reason) && visit("imports", i.imports) &&
         visit("import_refusal", i.import_refusal);
}

}  // namespace

const char* TierName(uint32_t tier) {
  return tier == TRINE_TIER_CPU    ? "cpu"
         : tier == TRINE_TIER_IGPU ? "igpu"
         : tier == TRINE_TIER_DGPU ? "dgpu"
                                   : "other";
}

std::string FieldText(const char* field, size_t capacity) {
  std::string text(field, strnlen(field, capacity));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return text;
}

Json DeviceInfoToJson(const trine_device_info& info) {
  Json json;
  ForEachMember(info, [&](const char* key, const auto& member) {
    using Member = std::remove_cvref_t<decltype(member)>;
    if constexpr (std::is_integral_v<Member>) {
      json[key] = member;
    } else if constexpr (std::is_same_v<Member, uint8_t[16]>) {
      json[key] = UuidText(member);
    } else {
      json[key] = FieldText(member);
    }
    return true;
  });
  return json;
}

bool DeviceInfoFromJson(const Json& json, trine_device_info* info) {
  *info = {};
  info->struct_size = sizeof(*info);
  return json.is_object() && ForEachMember(*info, [&](const char* key, auto& member) {
           using Member = std::remove_cvref_t<decltype(member)>;
           const auto it = json.find(key);
           if constexpr (std::is_integral_v<Member>) {
             if (it == json.end() || !it->is_number_unsigned()) return false;
             member = it->template get<Member>();
             return true;
           } else {
             if (it == json.end() || !it->is_string()) return false;
             const auto& text = it->template get_ref<const std::string&>();
             if constexpr (std::is_same_v<Member, uint8_t[16]>) {
               return ParseUuid(text, member);
             } else {
               std::strncpy(member, text.c_str(), sizeof(member) - 1);
               member[sizeof(member) - 1] = '\0';
               return true;
             }
           }
         });
}

}  // namespace trine
