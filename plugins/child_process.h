// Runs a helper program to its end, under a time limit, without fork: the host may be anybody's
// program with any number of threads. The child reports in lines on a pipe of its own
// (kReportFd), so that whatever a plugin or driver prints does not mix with the report.
#ifndef TRINE_PLUGINS_CHILD_PROCESS_H_
#define TRINE_PLUGINS_CHILD_PROCESS_H_

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace trine {

inline constexpr int kReportFd = 3;

struct ChildOptions {
  std::vector<std::string> argv;  // argv[0] is the program's path
  std::chrono::milliseconds timeout{10000};
  // No line for this long also counts as a hang; 0 = no such limit.
  std::chrono::milliseconds idle_timeout{0};
  // Called on the calling thread for each whole line of the report.
  std::function<void(std::string_view line)> on_line;
};

struct ChildResult {
  enum class End { kExited, kSignalled, kTimedOut, kNotStarted, kUnknown };
  End end = End::kNotStarted;
  int code = 0;             // exit code or signal number
  std::string error;        // kNotStarted: why
  std::string stderr_tail;  // the last few kilobytes, for a person

  // kUnknown: the host ignores SIGCHLD, so the system told nobody how the child ended; what it
  // reported is all there is to go by.
  bool Ok() const { return (end == End::kExited && code == 0) || end == End::kUnknown; }
};

// For the child: dies with the parent that started it, leaves no core file.
void FollowParent();

// Blocks. Safe to call from several threads at once.
ChildResult RunChild(const ChildOptions& options);

// "exited with code 3", "crashed with SIGSEGV (segmentation fault)", "did not answer within 10 s".
std::string DescribeEnd(const ChildResult& result, const ChildOptions& options);

}  // namespace trine

#endif  // TRINE_PLUGINS_CHILD_PROCESS_H_
