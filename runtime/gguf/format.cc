#include "runtime/gguf/format.h"

#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace trine::gguf {
namespace {

struct ValueTypeRow {
  const char* name;
  uint64_t bytes;
};
constexpr ValueTypeRow kValueTypeRows[kValueTypes] = {
    {"uint8", 1},  {"int8", 1},    {"uint16", 2},  {"int16", 2},  {"uint32", 4},
    {"int32", 4},  {"float32", 4}, {"bool", 1},    {"string", 8}, {"array", 12},
    {"uint64", 8}, {"int64", 8},   {"float64", 8},
};

// Indexed by the number in the file.
constexpr const char* kTensorTypeNames[] = {
    "F32",   "F16",        "Q4_0",       "Q4_1",       "Q4_2",     "Q4_3",     "Q5_0",
    "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
    "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
    "IQ3_S", "IQ2_S",      "IQ4_XS",     "I8",         "I16",      "I32",      "I64",
    "F64",   "IQ1_M",      "BF16",       "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
    "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",    "NVFP4",    "Q1_0",
    "Q2_0",
};

struct TensorTypeRow {
  uint32_t number;
  quant::Type type;
};
constexpr TensorTypeRow kTensorTypeRows[] = {
    {0, quant::Type::kF32},     {1, quant::Type::kF16},     {2, quant::Type::kQ4_0},
    {3, quant::Type::kQ4_1},    {6, quant::Type::kQ5_0},    {7, quant::Type::kQ5_1},
    {8, quant::Type::kQ8_0},    {10, quant::Type::kQ2_K},   {11, quant::Type::kQ3_K},
    {12, quant::Type::kQ4_K},   {13, quant::Type::kQ5_K},   {14, quant::Type::kQ6_K},
    {20, quant::Type::kIQ4_NL}, {23, quant::Type::kIQ4_XS}, {26, quant::Type::kI32},
    {30, quant::Type::kBF16},   {34, quant::Type::kTQ1_0},  {35, quant::Type::kTQ2_0},
    {39, quant::Type::kMXFP4},
};

}  // namespace

const char* ValueTypeName(uint32_t type) {
  return type < kValueTypes ? kValueTypeRows[type].name : "unknown";
}

uint64_t ValueTypeBytes(ValueType type) {
  return kValueTypeRows[static_cast<uint32_t>(type)].bytes;
}

std::optional<quant::Type> TensorTypeFromNumber(uint32_t number) {
  for (const TensorTypeRow& row : kTensorTypeRows) {
    if (row.number == number) return row.type;
  }
  return std::nullopt;
}

std::optional<uint32_t> NumberFromTensorType(quant::Type type) {
  for (const TensorTypeRow& row : kTensorTypeRows) {
    if (row.type == type) return row.number;
  }
  return std::nullopt;
}

const char* TensorTypeName(uint32_t number) {
  return number < std::size(kTensorTypeNames) ? kTensorTypeNames[number] : "";
}

std::string TensorTypeName(quant::Type type) {
  const std::optional<uint32_t> number = NumberFromTensorType(type);
  return number ? TensorTypeName(*number) : absl::AsciiStrToUpper(quant::Traits(type).name);
}

std::string SupportedTensorTypes() {
  std::string names;
  for (const TensorTypeRow& row : kTensorTypeRows) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", TensorTypeName(row.number));
  }
  return names;
}

}  // namespace trine::gguf
