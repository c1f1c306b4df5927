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

// Lets a command that keeps something at its end, such as counts of experts, come to that end.
// While an object of this class lives, the first signal that would end the program calls `stop`
// instead, which may do only what a signal handler may. A second signal ends the program at once,
// with kInterrupted. One that comes within 0.3 s of the first is ignored, because the same signal
// may be sent to the process and to its group. One object of this class may live at a time.
class OrderlyEnd {
 public:
  using Stop = void (*)();
  // `stop`: null: the command asks raised().
  explicit OrderlyEnd(Stop stop = nullptr);

  // Returns whether a signal has come. It stays so.
  bool raised() const;
  // Returns a file for poll, which can be read from once a signal has come; -1: the system gave
  // none.
  int wake_file() const;

 private:
  ScopedSignals ending_;
};

}  // namespace trine
