// A place in a request, with its path. What is wrong with it is said once for the whole request:
// the first error stays, and reading goes on as if the field were absent.
#ifndef TRINE_TOOLS_SERVER_OPENAI_FIELD_H_
#define TRINE_TOOLS_SERVER_OPENAI_FIELD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/server/openai/json.h"

namespace trine::server {

class Field {
 public:
  // The top of a document. Both outlive every field of it.
  Field(const Json& document, absl::Status* error) : Field(&document, "", error) {}

  bool present() const { return json_ != nullptr; }  // null counts as absent
  bool is_string() const { return present() && json_->is_string(); }
  bool is_bool() const { return present() && json_->is_boolean(); }
  bool is_number() const { return present() && json_->is_number(); }
  bool is_array() const { return present() && json_->is_array(); }
  bool is_object() const { return present() && json_->is_object(); }
  const Json& json() const { return *json_; }  // of one that is present
  const std::string& path() const { return path_; }

  // Of an object: absent where it has none of that name. Wrong where this is present and no object.
  Field operator[](std::string_view name) const;
  // Of an array. Wrong where this is present and no array, or has more than `at_most`.
  std::vector<Field> Items(size_t at_most) const;
  // Of an object, by name.
  std::vector<std::pair<std::string, Field>> Members(size_t at_most) const;

  // Each leaves *out as it is where the field is absent or wrong.
  void Get(bool* out) const;
  void Get(std::string* out) const;
  void Get(float* out, double low, double high) const;
  void Get(int32_t* out, int32_t low, int32_t high) const;
  void Get(int64_t* out, int64_t low, int64_t high) const;

  // Whether it is there; where it is not, that is the error.
  bool Require() const;
  // An object of any members, or absent; else wrong.
  bool ExpectObject() const;

  // "'path' " and the message: the request's error, if it has none yet.
  void Fail(std::string_view message, std::string_view code = "") const;
  bool failed() const { return !error_->ok(); }

  // "is a string: expected X".
  void FailType(std::string_view expected) const;

 private:
  Field(const Json* json, std::string path, absl::Status* error)
      : json_(json != nullptr && !json->is_null() ? json : nullptr),
        path_(std::move(path)),
        error_(error) {}

  const Json* json_;
  std::string path_;
  absl::Status* error_;
};

// A request's document: an object.
absl::StatusOr<Json> ParseRequest(std::string_view body);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_FIELD_H_
