// Shows the progress of some work on a line of the terminal. Does nothing if there is no terminal.
#pragma once

#include <chrono>
#include <string>

namespace trine {

class Progress {
 public:
  // `what` names the work, such as "loading" or "reading the prompt".
  explicit Progress(std::string what);
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows `fraction`, 0 to 1. Updates the line at most ten times a second, and not in the first
  // quarter of a second. Returns true, which tells work that asks to go on.
  bool Update(double fraction);
  bool Update(auto done, auto total) {
    return Update(static_cast<double>(done) / static_cast<double>(total));
  }
  void Clear();

 private:
  std::string what_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace trine
