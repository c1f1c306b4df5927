// Names of answers and calls: a prefix and random letters and digits. Any thread.
#ifndef TRINE_TOOLS_SERVER_OPENAI_IDS_H_
#define TRINE_TOOLS_SERVER_OPENAI_IDS_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace trine::server {

std::string RandomId(std::string_view prefix, size_t letters = 24);

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_IDS_H_
