// Makes ids of answers and calls: a prefix followed by random letters and digits. Any thread may
// call it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trine::server {

std::string RandomId(std::string_view prefix, size_t letters = 24);

}  // namespace trine::server
