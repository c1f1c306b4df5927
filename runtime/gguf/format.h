// The numbers and limits of the GGUF format, shared by reader and writer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "kernels/quant/block_types.h"

namespace trine::gguf {

class Metadata;

inline constexpr char kMagic[4] = {'G', 'G', 'U', 'F'};
inline constexpr uint64_t kHeaderBytes = 24;  // magic, version, two counts

inline constexpr char kAlignmentKey[] = "general.alignment";
inline constexpr uint32_t kDefaultAlignment = 32;
inline constexpr uint32_t kMinAlignment = 8;
inline constexpr uint32_t kMaxAlignment = 1u << 26;

// Keys of a split file: the part's number, counted from 0; the number of parts; and the number of
// tensors in all parts.
inline constexpr char kSplitNumberKey[] = "split.no";
inline constexpr char kSplitCountKey[] = "split.count";
inline constexpr char kSplitTensorsKey[] = "split.tensors.count";
inline constexpr int64_t kMaxParts = 65535;
inline bool IsSplitKey(std::string_view key) {
  return key == kSplitNumberKey || key == kSplitCountKey || key == kSplitTensorsKey;
}

// Limits far above what any model needs. They bound what a hostile file can make the reader
// allocate.
inline constexpr uint64_t kMaxKeys = 1u << 16;
inline constexpr uint64_t kMaxKeyBytes = 65535;
inline constexpr uint64_t kMaxTensors = 1u << 20;
inline constexpr uint64_t kMaxTensorNameBytes = 1023;
inline constexpr uint64_t kMaxArrayElements = 1u << 24;  // all arrays of a file together
inline constexpr uint64_t kMaxNestedArrays = 1u << 16;
inline constexpr int kMaxArrayDepth = 4;
inline constexpr uint32_t kMaxRank = 4;

enum class ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
inline constexpr uint32_t kValueTypes = 13;

// Returns the type of a `T` in a file.
template <class T>
constexpr ValueType ValueTypeOf() {
  if constexpr (std::is_same_v<T, bool>) return ValueType::kBool;
  if constexpr (std::is_same_v<T, float>) return ValueType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return ValueType::kFloat64;
  constexpr bool is_signed = std::is_signed_v<T>;
  if constexpr (sizeof(T) == 1) return is_signed ? ValueType::kInt8 : ValueType::kUint8;
  if constexpr (sizeof(T) == 2) return is_signed ? ValueType::kInt16 : ValueType::kUint16;
  if constexpr (sizeof(T) == 4) return is_signed ? ValueType::kInt32 : ValueType::kUint32;
  return is_signed ? ValueType::kInt64 : ValueType::kUint64;
}

// Calls `use` with a zero of the C++ type that `type` stands for. Returns false, without a call, if
// `type` is bool, string or array, which are no numbers.
template <class Use>
bool WithNumberType(ValueType type, Use use) {
  const auto one_of = [&]<class... T>(T... zeros) {
    return ((type == ValueTypeOf<T>() && (use(zeros), true)) || ...);
  };
  return one_of(uint8_t{}, int8_t{}, uint16_t{}, int16_t{}, uint32_t{}, int32_t{}, uint64_t{},
                int64_t{}, float{}, double{});
}

// Returns a name such as "uint8" or "string", or "unknown" for an undefined number.
const char* ValueTypeName(uint32_t type);

// Returns the fewest bytes that a value takes in the file: a number's size, or the size of an empty
// string or array. `type` must be defined.
uint64_t ValueTypeBytes(ValueType type);

// Convert between tensor types and the numbers that files have for them. The first returns nullopt
// for types that Trine does not read, the second for types that no file has.
std::optional<quant::Type> TensorTypeFromNumber(uint32_t number);
std::optional<uint32_t> NumberFromTensorType(quant::Type type);

// Return a name such as "Q4_K", or "" for an undefined number. Also know the names of types that
// Trine does not read.
const char* TensorTypeName(uint32_t number);
std::string TensorTypeName(quant::Type type);

// Returns "F32, F16, Q4_0, ...": the types that a file may have.
std::string SupportedTensorTypes();

// The name of a part of a split file: NAME-00002-of-00005.gguf.
struct SplitName {
  std::string prefix;  // folders included
  int64_t number = 0;  // counts from 0, as split.no does; the name counts from 1
  int64_t count = 0;
};

// Takes a path apart. Returns nullopt if it does not have this form or its numbers are impossible.
std::optional<SplitName> ParseSplitName(const std::string& path);

// Returns the path of a part; `number` counts from 0.
std::string SplitPath(const std::string& prefix, int64_t number, int64_t count);

// The key of the file type, a number that names the type of most weights.
inline constexpr char kFileTypeKey[] = "general.file_type";
inline constexpr char kQuantizationVersionKey[] = "general.quantization_version";
// The version of the block layouts that Trine reads and writes. GGUF has no newer version.
inline constexpr uint32_t kQuantizationVersion = 2;

// Returns a name such as "Q4_K_M", or "" for an undefined number. Also knows the names of types
// that Trine does not read.
const char* FileTypeName(int64_t number);

// Returns the number of a file type, or nullopt for an unknown name. Ignores upper and lower case.
std::optional<uint32_t> FileTypeNumber(std::string_view name);

// Returns the name of the file's type, "type 99" for an unknown number, "" if the file has none.
std::string FileTypeOf(const Metadata& metadata);

}  // namespace trine::gguf
