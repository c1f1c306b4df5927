// Reads small JSON files that people may have changed by hand: the text, and members with a
// sentence about the first one that is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace trine {

// Returns the text of a file of at most `most` bytes. All errors name the file; NOT_FOUND: there is
// none. `what` says what the file should be: "a head".
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t most, const char* what);

// Returns the 16 hexadecimal digits that JsonMembers::Hash reads.
std::string HashText(uint64_t hash);

// Reads the members of an object. A member that is wrong or missing has the value 0, and the first
// error is kept in a status.
class JsonMembers {
 public:
  using Json = nlohmann::ordered_json;

  // Both must outlive this object.
  JsonMembers(const Json& json, absl::Status* status) : json_(json), status_(status) {}

  bool Has(const char* name) const { return json_.is_object() && json_.contains(name); }
  std::string Text(const char* name);
  int64_t Integer(const char* name);
  uint64_t Unsigned(const char* name);
  // Reads a whole number of at least 1 and at most `most`.
  int64_t Count(const char* name, int64_t most);
  uint64_t Hash(const char* name);
  bool Flag(const char* name);
  double Number(const char* name);
  std::vector<double> Numbers(const char* name);
  std::vector<std::string> Texts(const char* name);
  // Return an empty object or list for a wrong one, so that its members are missing, too.
  const Json& Object(const char* name);
  const Json& List(const char* name);

  void Fail(const char* name, const std::string& what);

 private:
  // Returns the member; null: there is none, or it is wrong.
  template <class Is>
  const Json* Member(const char* name, Is is, const char* wrong);
  template <class T, class Is>
  T Get(const char* name, Is is, const char* wrong);
  template <class T, class Is>
  std::vector<T> Values(const char* name, Is is, const char* wrong);

  const Json& json_;
  absl::Status* status_;
};

}  // namespace trine
