// Values of a document by number, so that comparing two of them is comparing numbers.
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/constraint/schema_facts.h"

namespace trine::constraint {
namespace {

// A text that equal values have in common.
void AppendCanonical(const Json& value, std::string* out) {
  if (value.is_object()) {
    std::vector<std::pair<std::string_view, const Json*>> members;
    for (const auto& [name, member] : value.items()) members.emplace_back(name, &member);
    std::sort(members.begin(), members.end());
    out->push_back('{');
    for (const auto& [name, member] : members) {
      // With its length, a name needs no escapes.
      absl::StrAppend(out, name.size(), ":", absl::string_view(name.data(), name.size()));
      AppendCanonical(*member, out);
      out->push_back(',');
    }
    out->push_back('}');
  } else if (value.is_array()) {
    out->push_back('[');
    for (const Json& item : value) {
      AppendCanonical(item, out);
      out->push_back(',');
    }
    out->push_back(']');
  } else if (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>() &&
             std::abs(value.get<double>()) < 0x1p63) {
    absl::StrAppend(out, static_cast<int64_t>(value.get<double>()));
  } else {
    out->append(value.dump());
  }
}

}  // namespace

absl::StatusOr<int32_t> SchemaReader::ValueId(const Json& value) {
  if (const auto it = value_ids_.find(&value); it != value_ids_.end()) return it->second;
  std::string text;
  AppendCanonical(value, &text);
  if (absl::Status s = Spend(1 + static_cast<int64_t>(text.size()) / 16); !s.ok()) return s;
  const auto next = static_cast<int32_t>(ids_by_text_.size());
  const int32_t id = ids_by_text_.try_emplace(std::move(text), next).first->second;
  value_ids_[&value] = id;
  return id;
}

}  // namespace trine::constraint
