// What signals do while a command is at work.
#ifndef TRINE_TOOLS_CLI_SIGNALS_H_
#define TRINE_TOOLS_CLI_SIGNALS_H_

#include <signal.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace trine {

// The exit code of a command that was interrupted.
inline constexpr int kInterrupted = 130;

// A handler for some signals, and in the end whatever they had before. A signal that is ignored
// stays ignored: under nohup a hang-up means nothing.
class ScopedSignals {
 public:
  using Handler = void (*)(int);
  ScopedSignals(std::initializer_list<int> signals, Handler handler);
  ~ScopedSignals();
  ScopedSignals(const ScopedSignals&) = delete;
  ScopedSignals& operator=(const ScopedSignals&) = delete;

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

// For work that leaves unfinished files when it is cut short: signals that would end the program
// only set a flag, which stays set, and a limit on file sizes is an error like a full disk.
class InterruptFlag {
 public:
  InterruptFlag();
  bool raised() const;

 private:
  ScopedSignals ending_;
  ScopedSignals file_size_;
};

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_SIGNALS_H_
