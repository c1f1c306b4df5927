#include "runtime/gguf/format.h"

#include <iterator>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "runtime/gguf/metadata.h"

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

constexpr size_t kDigits = 5;
constexpr absl::string_view kForm = "-00000-of-00000.gguf";  // each 0 is a digit

int64_t Number(absl::string_view digits) {
  int64_t number = 0;
  for (const char digit : digits) number = number * 10 + (digit - '0');
  return number;
}

// Indexed by number; empty: withdrawn.
constexpr const char* kNames[] = {
    "F32",   "F16",     "Q4_0",   "Q4_1",   "",       "",        "",       "Q8_0",   "Q5_0",
    "Q5_1",  "Q2_K",    "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S",  "Q4_K_M", "Q5_K_S", "Q5_K_M",
    "Q6_K",  "IQ2_XXS", "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS", "IQ1_S",  "IQ4_NL", "IQ3_S",
    "IQ3_M", "IQ2_S",   "IQ2_M",  "IQ4_XS", "IQ1_M",  "BF16",    "",       "",       "",
    "TQ1_0", "TQ2_0",   "MXFP4",  "NVFP4",  "Q1_0",   "Q2_0",
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

std::optional<SplitName> ParseSplitName(const std::string& path) {
  if (path.size() <= kForm.size()) return std::nullopt;
  const size_t prefix_bytes = path.size() - kForm.size();
  const absl::string_view tail = absl::string_view(path).substr(prefix_bytes);
  for (size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == '0' ? !absl::ascii_isdigit(static_cast<unsigned char>(tail[i]))
                        : tail[i] != kForm[i]) {
      return std::nullopt;
    }
  }
  SplitName name;
  name.prefix = path.substr(0, prefix_bytes);
  name.number = Number(tail.substr(kForm.find('0'), kDigits)) - 1;
  name.count = Number(tail.substr(kForm.find("-of-") + 4, kDigits));
  if (name.number < 0 || name.number >= name.count) return std::nullopt;
  return name;
}

std::string SplitPath(const std::string& prefix, int64_t number, int64_t count) {
  return absl::StrFormat("%s-%05d-of-%05d.gguf", prefix, number + 1, count);
}

const char* FileTypeName(int64_t number) {
  if (number < 0 || number >= static_cast<int64_t>(std::size(kNames))) return "";
  return kNames[number];
}

std::optional<uint32_t> FileTypeNumber(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (uint32_t i = 0; i < std::size(kNames); ++i) {
    if (absl::EqualsIgnoreCase(absl::string_view(name.data(), name.size()), kNames[i])) return i;
  }
  return std::nullopt;
}

std::string FileTypeOf(const Metadata& metadata) {
  const auto number = metadata.Integer(kFileTypeKey, 0, std::numeric_limits<uint32_t>::max());
  if (!number.ok()) return "";
  const std::string name = FileTypeName(*number);
  return name.empty() ? absl::StrCat("type ", *number) : name;
}

}  // namespace trine::gguf
