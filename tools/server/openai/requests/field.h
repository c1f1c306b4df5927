// Reads a field of a request and keeps its path for errors. Only the first error of a request is
// kept: a wrong field is treated as if it were absent, and reading continues.
#pragma once

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
  // Makes the field of a whole document. `document` and `error` must outlive all of its fields.
  Field(const Json& document, absl::Status* error) : Field(&document, "", error) {}

  bool present() const { return json_ != nullptr; }  // null counts as absent
  bool is_string() const { return present() && json_->is_string(); }
  bool is_bool() const { return present() && json_->is_boolean(); }
  bool is_number() const { return present() && json_->is_number(); }
  bool is_array() const { return present() && json_->is_array(); }
  bool is_object() const { return present() && json_->is_object(); }
  const Json& json() const { return *json_; }  // REQUIRES: present()
  const std::string& path() const { return path_; }

  // Returns a member of an object; the member is absent if the object has none of that name. Sets
  // the error if this field is present and not an object.
  Field operator[](std::string_view name) const;
  // Returns the items of an array. Sets the error if this field is present and not an array, or has
  // more than `at_most` items.
  std::vector<Field> Items(size_t at_most) const;
  // Returns the members of an object with their names.
  std::vector<std::pair<std::string, Field>> Members(size_t at_most) const;

  // Read the value into *out. Leave *out unchanged if the field is absent or wrong. Set the error
  // if it is wrong.
  void Get(bool* out) const;
  void Get(std::string* out) const;
  void Get(float* out, double low, double high) const;
  void Get(int32_t* out, int32_t low, int32_t high) const;
  void Get(int64_t* out, int64_t low, int64_t high) const;
  // Returns the value, or `otherwise` if the field is absent or wrong. Sets the error if it is
  // wrong.
  template <class T>
  T Or(T otherwise) const {
    Get(&otherwise);
    return otherwise;
  }
  std::string Text(const char* otherwise = "") const { return Or<std::string>(otherwise); }

  // Returns whether the field is present. Sets the error if it is not.
  bool Require() const;
  // Sets the error if this field is present and not an object.
  bool ExpectObject() const;

  // Sets the request's error to "'path' " and the message, unless there is an error already.
  void Fail(std::string_view message, std::string_view code = "") const;
  bool failed() const { return !error_->ok(); }

  // Sets the error to "is a string: expected X", with the field's own type.
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

// Parses a request's body, which must be an object.
absl::StatusOr<Json> ParseRequest(std::string_view body);

// Returns the request that `read(root, &request)` reads from a document, or the first error.
template <class Request, class Read>
absl::StatusOr<Request> ReadRequest(const absl::StatusOr<Json>& document, Read read) {
  if (!document.ok()) return document.status();
  absl::Status error;
  Request request{};
  read(Field(*document, &error), &request);
  if (!error.ok()) return error;
  return request;
}

}  // namespace trine::server
