#include "tools/server/openai/json.h"

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/tokenizer/utf8.h"

namespace trine::server {
namespace {

constexpr size_t kMaxMessageBytes = 200;

// The library's own builder searches all members of an object for each new one.
class Builder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return Add(Json()); }
  bool boolean(bool value) override { return Add(Json(value)); }
  bool number_integer(int64_t value) override { return Add(Json(value)); }
  bool number_unsigned(uint64_t value) override { return Add(Json(value)); }
  bool number_float(double value, const std::string&) override { return Add(Json(value)); }
  bool string(std::string& value) override { return Add(Json(std::move(value))); }
  bool binary(Json::binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(Json::object()); }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }

  bool key(std::string& name) override {
    open_.back()->get_ref<Json::object_t&>().emplace_back(std::move(name), Json());
    return true;
  }

  bool end_object() override {
    absl::flat_hash_set<absl::string_view> names;
    for (const auto& [name, value] : open_.back()->get_ref<Json::object_t&>()) {
      if (names.insert(name).second) continue;
      error_ = absl::StrCat("has two members \"", name, "\" in one object");
      return false;
    }
    return Close();
  }

  bool parse_error(size_t position, const std::string&, const Json::exception& error) override {
    // Drops the library's own name of the error, and the end of a quoted token that is very long.
    std::string_view text = error.what();
    if (const size_t end = text.find("] "); end != text.npos) text.remove_prefix(end + 2);
    error_ = absl::StrCat("is not JSON, byte ", position, ": ",
                          std::string(text.substr(0, kMaxMessageBytes)));
    return false;
  }

  Json Take() { return std::move(root_); }
  const std::string& error() const { return error_; }

 private:
  bool Add(Json value) {
    Place(std::move(value));
    return true;
  }

  bool Open(Json value) {
    if (open_.size() >= kMaxJsonDepth) {
      error_ = absl::StrCat("is nested deeper than ", kMaxJsonDepth, " levels");
      return false;
    }
    open_.push_back(Place(std::move(value)));
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  // Adds a value and returns its place. Values that are still open don't move, because each is the
  // last item of what it is in.
  Json* Place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_object()) {
      Json& slot = parent.get_ref<Json::object_t&>().back().second;
      slot = std::move(value);
      return &slot;
    }
    Json::array_t& items = parent.get_ref<Json::array_t&>();
    items.push_back(std::move(value));
    return &items.back();
  }

  Json root_;
  std::vector<Json*> open_;
  std::string error_;
};

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text) {
  if (absl::Status status = ValidateUtf8(text, "the JSON"); !status.ok()) return status;
  Builder builder;
  try {
    if (Json::sax_parse(text.begin(), text.end(), &builder)) return builder.Take();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("reading JSON: ", error.what()));
  }
  return absl::InvalidArgumentError(absl::StrCat("the text ", builder.error()));
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace trine::server
