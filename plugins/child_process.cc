#include "plugins/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

extern char** environ;

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kStderrTail = 4096;
constexpr size_t kMaxLine = 1 << 20;
// The lowest descriptor for the child's ends of the pipes. It lies above the numbers that the child
// uses, so that no dup2 overwrites a descriptor still needed.
constexpr int kParked = kReportFd + 1;

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { Close(); }
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read, write;

  bool Open() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return false;
    read = Fd(fds[0]);
    const int parked = fcntl(fds[1], F_DUPFD_CLOEXEC, kParked);
    close(fds[1]);
    write = Fd(parked);
    return parked >= 0;
  }
};

// Reads a pipe. Passes whole lines to the callback, or keeps the last bytes if there is none.
class Reader {
 public:
  Reader(int fd, std::function<void(std::string_view)> on_line)
      : fd_(fd), on_line_(std::move(on_line)) {}

  // Reads the available bytes. Returns false at end of file or after an error.
  bool Read() {
    char buffer[4096];
    const ssize_t n = read(fd_, buffer, sizeof(buffer));
    if (n <= 0) return n < 0 && errno == EINTR;
    pending_.append(buffer, static_cast<size_t>(n));
    if (on_line_) {
      size_t begin = 0;
      for (size_t end; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1) {
        on_line_(std::string_view(pending_).substr(begin, end - begin));
      }
      pending_.erase(0, begin);
      if (pending_.size() > kMaxLine) pending_.clear();
    } else if (pending_.size() > kStderrTail) {
      pending_.erase(0, pending_.size() - kStderrTail);
    }
    return true;
  }
  int fd() const { return fd_; }
  const std::string& pending() const { return pending_; }

 private:
  int fd_;
  std::function<void(std::string_view)> on_line_;
  std::string pending_;
};

int Spawn(const ChildOptions& options, int report_fd, int stderr_fd, pid_t* pid) {
  std::vector<char*> argv;
  for (const std::string& arg : options.argv) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, stderr_fd, 2);
  posix_spawn_file_actions_adddup2(&actions, report_fd, kReportFd);

  // The child gets its own process group, so that the processes it starts can be killed with it,
  // and default signals, whatever the host ignores or blocks.
  posix_spawnattr_t attr;
  posix_spawnattr_init(&attr);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attr, &none);
  posix_spawnattr_setsigdefault(&attr, &all);
  posix_spawnattr_setpgroup(&attr, 0);
  posix_spawnattr_setflags(&attr,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawn(pid, argv[0], &actions, &attr, argv.data(), environ);
  posix_spawnattr_destroy(&attr);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

int Milliseconds(Clock::duration d) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
  return static_cast<int>(std::clamp<int64_t>(ms, 0, 1000));
}

bool HasEnded(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

// Reads both pipes until the child closes the report pipe or ends; a process that the child forked
// may hold the pipe open. Returns false if the time was up first.
bool Follow(pid_t pid, const ChildOptions& options, Reader* report, Reader* errors) {
  const Clock::time_point deadline = Clock::now() + options.timeout;
  Clock::time_point idle_since = Clock::now();
  bool errors_open = true;
  for (;;) {
    const Clock::time_point now = Clock::now();
    if (now >= deadline) return false;
    if (options.idle_timeout.count() > 0 && now - idle_since >= options.idle_timeout) return false;
    pollfd fds[2] = {{report->fd(), POLLIN, 0}, {errors_open ? errors->fd() : -1, POLLIN, 0}};
    if (poll(fds, 2,
             Milliseconds(
                 std::min<Clock::duration>(deadline - now, std::chrono::milliseconds(100)))) < 0 &&
        errno != EINTR) {
      return false;
    }
    if (fds[0].revents == 0 && fds[1].revents == 0 && HasEnded(pid)) {
      pollfd rest{report->fd(), POLLIN, 0};  // reported between poll and the child's end
      while (poll(&rest, 1, 0) > 0 && report->Read()) {
      }
      return true;
    }
    if (fds[1].revents != 0) errors_open = errors->Read();
    if (fds[0].revents != 0) {
      idle_since = Clock::now();
      if (!report->Read()) return true;
    }
  }
}

// Waits up to `patience` for the child to end, then kills its process group. Kills before it reaps
// the child, because until then the system can't reuse the group's number.
void Reap(pid_t pid, std::chrono::milliseconds patience, ChildResult* result) {
  const Clock::time_point deadline = Clock::now() + patience;
  auto pause = std::chrono::microseconds(200);
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0 && Clock::now() < deadline) {
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(pause * 2, std::chrono::milliseconds(5));
  }
  const bool timed_out = info.si_pid == 0 && kill(pid, 0) == 0;
  kill(-pid, SIGKILL);
  int status = 0;
  pid_t got = 0;
  while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
  }
  if (timed_out) {
    result->end = ChildResult::End::kTimedOut;
  } else if (got != pid) {
    result->end = ChildResult::End::kUnknown;
  } else if (WIFSIGNALED(status)) {
    result->end = ChildResult::End::kSignalled;
    result->code = WTERMSIG(status);
  } else {
    result->end = ChildResult::End::kExited;
    result->code = WEXITSTATUS(status);
  }
}

const char* SignalName(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV (segmentation fault)";
    case SIGABRT:
      return "SIGABRT (abort)";
    case SIGILL:
      return "SIGILL (illegal instruction)";
    case SIGBUS:
      return "SIGBUS (bus error)";
    case SIGFPE:
      return "SIGFPE (arithmetic error)";
    case SIGKILL:
      return "SIGKILL (killed, perhaps for memory)";
    default:
      return nullptr;
  }
}

}  // namespace

void FollowParent() {
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

ChildResult RunChild(const ChildOptions& options) {
  ChildResult result;
  Pipe report, errors;
  if (options.argv.empty() || !report.Open() || !errors.Open()) {
    result.error = options.argv.empty()                 ? "no program given"
                   : errno == EINVAL || errno == EMFILE ? "no file descriptors are left (ulimit -n)"
                                                        : std::strerror(errno);
    return result;
  }
  pid_t pid = 0;
  const int error = Spawn(options, report.write.get(), errors.write.get(), &pid);
  if (error != 0) {
    result.error = options.argv[0] + ": " + std::strerror(error);
    return result;
  }
  report.write.Close();
  errors.write.Close();

  Reader report_reader(
      report.read.get(), options.on_line ? options.on_line : [](auto) {});
  Reader error_reader(errors.read.get(), nullptr);
  const bool in_time = Follow(pid, options, &report_reader, &error_reader);
  // A sound child ends at once when its pipe is closed. Kills one that hangs in an exit handler.
  Reap(pid, std::chrono::milliseconds(in_time ? 2000 : 0), &result);
  pollfd left{errors.read.get(), POLLIN, 0};
  while (poll(&left, 1, 0) > 0 && error_reader.Read()) {
  }
  result.stderr_tail = error_reader.pending();
  return result;
}

std::string DescribeEnd(const ChildResult& result, const ChildOptions& options) {
  switch (result.end) {
    case ChildResult::End::kExited:
      return "exited with code " + std::to_string(result.code);
    case ChildResult::End::kSignalled: {
      const char* name = SignalName(result.code);
      return name != nullptr ? std::string("crashed with ") + name
                             : "was ended by signal " + std::to_string(result.code);
    }
    case ChildResult::End::kTimedOut: {
      auto limit = options.timeout;
      if (options.idle_timeout.count() > 0) limit = std::min(limit, options.idle_timeout);
      const auto ms = limit.count();
      return "did not answer within " +
             (ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms");
    }
    case ChildResult::End::kUnknown:
      return "ended; how is not known, because this program ignores SIGCHLD,";
    case ChildResult::End::kNotStarted:
      return "could not be started: " + result.error;
  }
  return "";
}

}  // namespace trine
