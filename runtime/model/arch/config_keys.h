// Reads the metadata keys of one architecture, ARCH.name. status() keeps the first failure, so a
// list of reads needs one check at its end. After a failure the values read mean nothing.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/gguf/metadata.h"

namespace trine {

// The largest values that a file may have. Products of two of them do not overflow.
inline constexpr int64_t kMaxWidth = int64_t{1} << 22;
inline constexpr int64_t kMaxContext = int64_t{1} << 30;

class ConfigKeys {
 public:
  ConfigKeys(const gguf::Metadata& metadata, std::string architecture)
      : metadata_(metadata), prefix_(std::move(architecture) + ".") {}

  bool Has(const char* name) const { return metadata_.Has(Name(name)); }
  int64_t Integer(const char* name, int64_t min, int64_t max);
  int64_t IntegerOr(const char* name, int64_t min, int64_t max, int64_t fallback);
  // Reads a finite number within [min, max].
  double Float(const char* name, double min, double max);
  double FloatOr(const char* name, double min, double max, double fallback);
  bool BoolOr(const char* name, bool fallback);
  std::string StringOr(const char* name, const std::string& fallback);
  // Reads `count` flags from an array of bools or integers.
  std::vector<bool> Flags(const char* name, int64_t count);
  bool IsArray(const char* name) const;

  void Require(bool condition, const std::string& why) {
    if (!condition) Fail(absl::InvalidArgumentError(why));
  }
  void Fail(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }
  const absl::Status& status() const { return status_; }
  std::string Name(const char* name) const { return prefix_ + name; }

 private:
  template <class T>
  T Take(const absl::StatusOr<T>& value, T fallback) {
    if (!value.ok()) Fail(value.status());
    return value.ok() ? *value : fallback;
  }

  const gguf::Metadata& metadata_;
  std::string prefix_;
  absl::Status status_;
};

}  // namespace trine
