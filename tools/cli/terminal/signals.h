// Sets signal handlers while a command is at work.
#pragma once

#include <signal.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace trine {

// The exit code of a command that was interrupted.
inline constexpr int kInterrupted = 130;

// Sets a handler for some signals, and restores the earlier handlers when it is destroyed. A signal
// that is ignored stays ignored, so a command under nohup survives a hang-up.
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

// Lets work finish that would leave incomplete files behind. While it lives, signals that would end
// the program only set a flag, which stays set, and exceeding a limit on file sizes is a write
// error, like a full disk.
class InterruptFlag {
 public:
  InterruptFlag();
  bool raised() const;

 private:
  ScopedSignals ending_;
  ScopedSignals file_size_;
};

}  // namespace trine
