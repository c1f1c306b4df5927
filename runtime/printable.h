// Text that may come from anywhere, made fit for one line of a message: control characters, and
// bytes that are no UTF-8, as \xNN.
#ifndef TRINE_RUNTIME_PRINTABLE_H_
#define TRINE_RUNTIME_PRINTABLE_H_

#include <string>
#include <string_view>

namespace trine {

std::string Printable(std::string_view text);

}  // namespace trine

#endif  // TRINE_RUNTIME_PRINTABLE_H_
