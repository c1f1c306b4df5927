// A line on the terminal that says how far something is; nothing at all where there is no terminal.
#ifndef TRINE_TOOLS_CLI_PROGRESS_H_
#define TRINE_TOOLS_CLI_PROGRESS_H_

#include <chrono>
#include <string>

namespace trine {

class Progress {
 public:
  // `what`: "loading", "reading the prompt".
  explicit Progress(std::string what);
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // 0 to 1. Shown at most ten times a second, and not in the first quarter of one.
  void Update(double fraction);
  void Clear();

 private:
  std::string what_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_PROGRESS_H_
