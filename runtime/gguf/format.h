// The numbers and limits of the GGUF format, shared by reader and writer.
#ifndef TRINE_RUNTIME_GGUF_FORMAT_H_
#define TRINE_RUNTIME_GGUF_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/quant/block_types.h"

namespace trine::gguf {

inline constexpr char kMagic[4] = {'G', 'G', 'U', 'F'};
inline constexpr uint64_t kHeaderBytes = 24;  // magic, version, two counts

inline constexpr char kAlignmentKey[] = "general.alignment";
inline constexpr uint32_t kDefaultAlignment = 32;
inline constexpr uint32_t kMinAlignment = 8;
inline constexpr uint32_t kMaxAlignment = 1u << 26;

// Of a split file: this part's number from 0, how many parts, tensors in all of them.
inline constexpr char kSplitNumberKey[] = "split.no";
inline constexpr char kSplitCountKey[] = "split.count";
inline constexpr char kSplitTensorsKey[] = "split.tensors.count";
inline constexpr int64_t kMaxParts = 65535;

// Far above any model's; what a hostile file can make the reader allocate is bounded by them.
inline constexpr uint64_t kMaxKeys = 1u << 16;
inline constexpr uint64_t kMaxKeyBytes = 65535;
inline constexpr uint64_t kMaxTensors = 1u << 20;
inline constexpr uint64_t kMaxTensorNameBytes = 1023;
inline constexpr uint64_t kMaxArrayElements = 1u << 24;  // of all arrays of a file together
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

// "uint8", "string"; "unknown" for a number that is no type.
const char* ValueTypeName(uint32_t type);

// The least a value takes in the file: its size, or a string's or an array's head. `type` is known.
uint64_t ValueTypeBytes(ValueType type);

// The numbers files use for tensor types.
std::optional<quant::Type> TensorTypeFromNumber(uint32_t number);
std::optional<uint32_t> NumberFromTensorType(quant::Type type);  // none for types no file has

// "Q4_K"; empty for a number nobody has defined. Knows types this project does not read.
const char* TensorTypeName(uint32_t number);
std::string TensorTypeName(quant::Type type);

// "F32, F16, Q4_0, ...": what a file may hold.
std::string SupportedTensorTypes();

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_FORMAT_H_
