#include "runtime/template/json_value.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "runtime/template/words.h"

namespace trine::jinja {
namespace {

// Builds values as the reader goes; containers under construction lie on a stack.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(std::string_view what) : what_(what) {}

  bool null() override { return Put(Value::None()); }
  bool boolean(bool value) override { return Put(Value::Bool(value)); }
  bool number_integer(int64_t value) override { return Put(Value::Int(value)); }
  bool number_unsigned(uint64_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Put(Value::Float(static_cast<double>(value)));
    }
    return Put(Value::Int(static_cast<int64_t>(value)));
  }
  bool number_float(double value, const std::string&) override { return Put(Value::Float(value)); }
  bool string(std::string& value) override { return Put(Value::String(value, true)); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(true); }
  bool start_array(size_t) override { return Open(false); }
  bool key(std::string& key) override {
    open_.back().key = Text(key, true);
    return true;
  }
  bool end_object() override {
    Dict dict = std::move(open_.back().dict);
    open_.pop_back();
    return Put(Given::OfDict(std::move(dict)));
  }
  bool end_array() override {
    std::vector<Value> items = std::move(open_.back().items);
    open_.pop_back();
    return Put(Given::OfList(std::move(items)));
  }
  bool parse_error(size_t place, const std::string&, const nlohmann::json::exception&) override {
    status_ = Wrong(what_, " can't be read as JSON, from byte ", place, " on");
    return false;
  }

  absl::StatusOr<Value> Take() {
    if (!status_.ok()) return status_;
    return std::move(result_);
  }

 private:
  struct Container {
    bool object = false;
    Text key;
    Dict dict;
    std::vector<Value> items;
  };

  bool Open(bool object) {
    if (open_.size() >= static_cast<size_t>(kMaxHeight)) {
      status_ = TooMuch(what_, " nests lists more than ", kMaxHeight, " deep");
      return false;
    }
    open_.push_back({object, {}, {}, {}});
    return true;
  }
  bool Put(Value value) {
    if (open_.empty()) {
      result_ = std::move(value);
    } else if (open_.back().object) {
      open_.back().dict.Set(std::move(open_.back().key), std::move(value));
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  const std::string_view what_;
  std::vector<Container> open_;
  Value result_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Value> ParseJson(std::string_view json, std::string_view what) {
  Builder builder(what);
  nlohmann::json::sax_parse(json.begin(), json.end(), &builder);
  return builder.Take();
}

}  // namespace trine::jinja
