// Text from a file, made fit for a message.
#ifndef TRINE_RUNTIME_GGUF_QUOTED_H_
#define TRINE_RUNTIME_GGUF_QUOTED_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace trine::gguf {

// 'text' in quotes, cut at a length a line can hold. What a terminal could obey, or is not UTF-8,
// becomes \xNN, \n or \t.
std::string Quoted(std::string_view text);

// The same without quotes and limit.
std::string Printable(std::string_view text);

// At most `bytes` of the front of `text`, not ending inside a UTF-8 character.
std::string_view Cut(std::string_view text, size_t bytes);

}  // namespace trine::gguf

#endif  // TRINE_RUNTIME_GGUF_QUOTED_H_
