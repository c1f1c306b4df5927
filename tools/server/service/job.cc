#include "tools/server/service/job.h"

#include <exception>
#include <new>

#include "absl/strings/str_cat.h"

namespace trine::server {

bool Job::Run(std::chrono::nanoseconds waited) {
  waited_ += waited;
  has_run_ = true;
  absl::Status status;
  try {
    status = Interruption();
    if (status.ok()) {
      const absl::StatusOr<bool> more = Work();
      if (more.ok() && *more) return true;
      status = more.status();
      // A want of memory is the server's, not the client's: 503, not 429.
      if (absl::IsResourceExhausted(status)) status = absl::UnavailableError(status.message());
    }
  } catch (const std::bad_alloc&) {
    status = absl::UnavailableError("the server is out of memory");
  } catch (const std::exception& e) {
    status = absl::InternalError(e.what());
  }
  Refuse(status);
  return false;
}

void Job::Refuse(const absl::Status& status) noexcept {
  try {
    Finish(status);
  } catch (const std::exception&) {
    // There is no memory to say so with: the connection is cut.
  }
}

void Job::Cancel(const absl::Status& why) {
  {
    std::lock_guard lock(mutex_);
    if (why_.ok()) why_ = why;
  }
  cancelled_ = true;
  OnCancel();
}

absl::Status Job::Interruption() const {
  if (reply_->exchange().gone()) return absl::CancelledError("the client has gone");
  if (Reply::Clock::now() - reply_->begin() > time_) {
    return absl::DeadlineExceededError(absl::StrCat("the answer has taken longer than the ",
                                                    time_.count(), " s that one may take"));
  }
  if (!cancelled_) return absl::OkStatus();
  std::lock_guard lock(mutex_);
  return why_;
}

}  // namespace trine::server
