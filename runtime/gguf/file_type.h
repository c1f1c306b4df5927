// general.file_type: the number by which a file says how its weights are mostly stored.
#ifndef TRINE_RUNTIME_GGUF_FILE_TYPE_H_
#define TRINE_RUNTIME_GGUF_FILE_TYPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/gguf/metadata.h"

namespace trine::gguf {

inline constexpr char kFileTypeKey[] = "general.file_type";
inline constexpr char kQuantizationVersionKey[] = "general.quantization_version";
// Of the block layouts this project knows: the current one.
inline constexpr uint32_t kQuantizationVersion = 2;

// "Q4_K_M"; empty for a number nobody has defined. Knows types this project does not read.
const char* FileTypeName(int64_t number);

// The number of a name, in any case; none when there is no such name.
std::optional<uint32_t> FileTypeNumber(std::string_view name);

// The name of the type a file says it has, "type 99" for an unknown one, "" when it says nothing.
std::string FileTypeOf(const Metadata& metadata);

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_FILE_TYPE_H_
