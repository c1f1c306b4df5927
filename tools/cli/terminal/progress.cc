#include "tools/cli/terminal/progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace trine {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Progress::Progress(std::string what)
    : what_(std::move(what)),
      terminal_(isatty(STDERR_FILENO) != 0),
      next_(steady_clock::now() + milliseconds(250)) {}

bool Progress::Update(double fraction) {
  if (!terminal_ || steady_clock::now() < next_) return true;
  next_ = steady_clock::now() + milliseconds(100);
  shown_ = true;
  std::fprintf(stderr, "\r%s %3.0f %%", what_.c_str(), 100 * fraction);
  return true;
}

void Progress::Clear() {
  if (shown_) std::fprintf(stderr, "\r%*s\r", static_cast<int>(what_.size()) + 6, "");
  shown_ = false;
}

}  // namespace trine
