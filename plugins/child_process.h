// Runs a helper program to its end, under a time limit. Does not fork, because the host may be any
// program with any number of threads. The child reports in lines on a pipe of its own (kReportFd),
// so that whatever a plugin or driver prints does not mix with the report.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace trine {

inline constexpr int kReportFd = 3;

// The program to run, and its limits.
struct ChildOptions {
  std::vector<std::string> argv;  // argv[0] is the program's path
  std::chrono::milliseconds timeout{10000};
  // The longest time without a byte of the report, after which the child is killed; 0: no limit.
  std::chrono::milliseconds idle_timeout{0};
  // Called on RunChild's thread for each whole line of the report; may be null.
  std::function<void(std::string_view line)> on_line;
};

// How a child ended. kUnknown: it ended, but the system did not say how.
struct ChildResult {
  enum class End { kExited, kSignalled, kTimedOut, kNotStarted, kUnknown };
  End end = End::kNotStarted;
  int code = 0;             // exit code or signal number
  std::string error;        // kNotStarted: the reason
  std::string stderr_tail;  // the last 4 KiB of stderr, for a person

  // kUnknown is taken as success: the host ignores SIGCHLD, so the system discarded the exit
  // status, and the child's report is all that the caller has.
  bool Ok() const { return (end == End::kExited && code == 0) || end == End::kUnknown; }
};

// Makes this process end when the parent that started it ends, and leave no core file. The child
// calls it.
void FollowParent();

// Blocks until the program has ended or was killed. Safe to call from several threads at once.
ChildResult RunChild(const ChildOptions& options);

// Returns text such as "exited with code 3", "crashed with SIGSEGV (segmentation fault)" or "did
// not answer within 10 s".
std::string DescribeEnd(const ChildResult& result, const ChildOptions& options);

}  // namespace trine
