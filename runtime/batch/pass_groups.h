// Decides into how many groups the sequences that decode together are divided. A pass takes one
// group, and there are as many passes in flight as groups. Not thread-safe.
//
// As a rule there is one group for each stage: a stage takes about the same time for any pass, so
// with another group each sequence would wait for one more pass in every round. If the host takes
// about as long to return a token as a stage takes for a pass, there is one more group, so that no
// stage waits for the host.
#pragma once

#include <chrono>
#include <cstdint>

namespace trine {

class PassGroups {
 public:
  using Duration = std::chrono::nanoseconds;

  // `patient_alone`: even a single stage waits for owners that are sampling (see patience).
  explicit PassGroups(int64_t stages, bool patient_alone = false)
      : stages_(stages), patient_(stages > 1 || patient_alone) {}

  // Records the time that a pass with one token for each sequence spent in its slowest stage.
  void StageTook(Duration time);
  // Records the time from the end of a pass until a sequence of it had its next token.
  void HostTook(Duration time);

  int64_t count() const { return stages_ > 1 && spare_ ? stages_ + 1 : stages_; }
  int64_t most() const { return stages_ > 1 ? stages_ + 1 : 1; }
  // Returns how long a pass that is not full waits for owners that have just received logits. Each
  // owner may have its own thread, so without waiting the fastest owner's sequence would go alone,
  // in this round and in all later ones. Returns 0 if the host is too slow for waiting to pay.
  Duration patience() const;

 private:
  void Decide();

  int64_t stages_;
  bool patient_;
  double stage_ns_ = 0, host_ns_ = 0;  // 0: not known yet
  bool spare_ = false;
};

}  // namespace trine
