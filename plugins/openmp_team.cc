#include "plugins/openmp_team.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "plugins/team_runs.h"

namespace trine {
namespace {

// The most workers of any team.
constexpr uint32_t kMostWorkers = 1024;

// Keeps OpenMP from giving fewer threads because the machine is busy (OMP_DYNAMIC), which the size
// of a team does not allow. Restores the calling thread's setting.
class FixedSize {
 public:
  FixedSize() : was_dynamic_(omp_get_dynamic() != 0) {
    if (was_dynamic_) omp_set_dynamic(0);
  }
  ~FixedSize() {
    if (was_dynamic_) omp_set_dynamic(1);
  }
  FixedSize(const FixedSize&) = delete;
  FixedSize& operator=(const FixedSize&) = delete;

 private:
  const bool was_dynamic_;
};

// How often this process was made by fork() since it first made a team.
int g_forks = 0;
// The value of g_forks when the calling thread last began a region of several threads; -1: never.
thread_local int g_forks_at_region = -1;

void CountForks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++g_forks; });
  static_cast<void>(registered);  // without memory for it, forks are not counted
}

// GCC's runtime keeps the pool of a thread that has begun regions. In a child process the pool's
// threads are missing, and a region would wait for them for ever.
absl::Status CheckPool() {
  if (g_forks_at_region < 0 || g_forks_at_region == g_forks) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this thread has run OpenMP's regions before fork(), and their threads are in the parent "
      "process alone: call from a new thread, or use the team 'own'");
}

// Returns how many threads a region gets that asks for `threads`.
uint32_t TryRegion(uint32_t threads) {
  if (threads > 1) g_forks_at_region = g_forks;
  uint32_t got = 1;
#pragma omp parallel num_threads(threads) default(none) shared(got)
  {
    if (omp_get_thread_num() == 0) got = static_cast<uint32_t>(omp_get_num_threads());
  }
  return got;
}

// Runs the team's region. Returns how many threads it got; with fewer than workers, none has run.
uint32_t RunRegion(TeamRuns* runs, uint32_t workers) {
  if (workers == 1) {
    runs->Share(0);  // also where a region would have no other thread to give
    return 1;
  }
  const FixedSize fixed;
  g_forks_at_region = g_forks;
  uint32_t got = 1;
#pragma omp parallel num_threads(workers) default(none) shared(runs, workers, got)
  {
    const auto worker = static_cast<uint32_t>(omp_get_thread_num());
    const auto threads = static_cast<uint32_t>(omp_get_num_threads());
    if (worker == 0) got = threads;
    // All threads see the same number, so either all of them run or none.
    if (threads == workers) runs->Share(worker);
  }
  return got;
}

absl::Status TooFew(uint32_t got, uint32_t wanted) {
  return absl::FailedPreconditionError(absl::StrCat(
      "OpenMP gives ", got, " of ", wanted,
      " threads: the call may be inside of a parallel region (OMP_MAX_ACTIVE_LEVELS), or more "
      "threads than OMP_THREAD_LIMIT may be in use"));
}

}  // namespace

bool OpenMpTeam::IsBuilt() { return true; }

absl::StatusOr<std::shared_ptr<ThreadTeam>> OpenMpTeam::Create(uint32_t threads) {
  const auto most = static_cast<uint32_t>(std::max(omp_get_max_threads(), 1));
  const uint32_t wanted = std::min(threads != 0 ? threads : most, kMostWorkers);
  CountForks();
  if (absl::Status s = CheckPool(); wanted > 1 && !s.ok()) return s;
  const uint32_t got = TryRegion(wanted);
  if (threads != 0 && got != wanted) return TooFew(got, wanted);
  const auto processors = static_cast<uint32_t>(std::max(omp_get_num_procs(), 1));
  return std::shared_ptr<ThreadTeam>(new OpenMpTeam(got, processors));
}

OpenMpTeam::OpenMpTeam(uint32_t workers, uint32_t processors)
    : processors_(processors), runs_(std::make_shared<TeamRuns>(workers, processors)) {}

uint32_t OpenMpTeam::workers() const { return runs_->workers(); }

absl::Status OpenMpTeam::Run(trine_worker_fn fn, void* arg) {
  // Keeps the state: an abandoned team's object may be destroyed before its last Run returns.
  const std::shared_ptr<TeamRuns> runs = runs_;
  return runs->Run(fn, arg, [&] {
    const uint32_t workers = runs->workers();
    if (absl::Status s = CheckPool(); workers > 1 && !s.ok()) return s;
    const uint32_t got = RunRegion(runs.get(), workers);
    return got == workers ? absl::OkStatus() : TooFew(got, workers);
  });
}

void OpenMpTeam::Abandon() { runs_->Abandon(); }

std::shared_ptr<ThreadTeam> OpenMpTeam::MakeAnother() const {
  return std::shared_ptr<ThreadTeam>(new OpenMpTeam(runs_->workers(), processors_));
}

}  // namespace trine
