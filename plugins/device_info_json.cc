#include "plugins/device_info_json.h"

#include <cstring>
#include <string>

#include "nlohmann/json.hpp"
#include "plugins/device_text.h"

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

template <class T>
bool Number(const Json& json, const char* key, T* out) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_number_unsigned()) return false;
  *out = it->get<T>();
  return true;
}

template <size_t N>
bool Text(const Json& json, const char* key, char (&out)[N]) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_string()) return false;
  std::strncpy(out, it->get_ref<const std::string&>().c_str(), N - 1);
  out[N - 1] = '\0';
  return true;
}

}  // namespace

Json DeviceInfoToJson(const trine_device_info& info) {
  Json json;
  json["name"] = FieldText(info.name);
  json["tier"] = info.tier;
  json["flags"] = info.flags;
  json["numerics"] = info.numerics;
  json["memory_total"] = info.memory_total;
  json["memory_free"] = info.memory_free;
  json["max_allocation_bytes"] = info.max_allocation_bytes;
  json["max_binding_bytes"] = info.max_binding_bytes;
  json["buffer_alignment"] = info.buffer_alignment;
  json["import_alignment"] = info.import_alignment;
  json["uuid"] = UuidText(info.uuid);
  json["pci_id"] = FieldText(info.pci_id);
  json["arch"] = FieldText(info.arch);
  json["driver"] = FieldText(info.driver);
  json["memory_pool"] = FieldText(info.memory_pool);
  json["bandwidth_domain"] = FieldText(info.bandwidth_domain);
  json["reason"] = FieldText(info.reason);
  json["imports"] = info.imports;
  json["import_refusal"] = FieldText(info.import_refusal);
  return json;
}

bool DeviceInfoFromJson(const Json& json, trine_device_info* info) {
  *info = {};
  info->struct_size = sizeof(*info);
  const auto uuid = json.find("uuid");
  return json.is_object() && Text(json, "name", info->name) && Number(json, "tier", &info->tier) &&
         Number(json, "flags", &info->flags) && Number(json, "numerics", &info->numerics) &&
         Number(json, "memory_total", &info->memory_total) &&
         Number(json, "memory_free", &info->memory_free) &&
         Number(json, "max_allocation_bytes", &info->max_allocation_bytes) &&
         Number(json, "max_binding_bytes", &info->max_binding_bytes) &&
         Number(json, "buffer_alignment", &info->buffer_alignment) &&
         Number(json, "import_alignment", &info->import_alignment) && uuid != json.end() &&
         uuid->is_string() && ParseUuid(uuid->get<std::string>(), info->uuid) &&
         Text(json, "pci_id", info->pci_id) && Text(json, "arch", info->arch) &&
         Text(json, "driver", info->driver) && Text(json, "memory_pool", info->memory_pool) &&
         Text(json, "bandwidth_domain", info->bandwidth_domain) &&
         Text(json, "reason", info->reason) && Number(json, "imports", &info->imports) &&
         Text(json, "import_refusal", info->import_refusal);
}

}  // namespace trine
