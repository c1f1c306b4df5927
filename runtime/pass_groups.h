// Into how many groups the sequences that are decoded together are divided: a pass takes one group,
// and so many passes are under way. Not thread-safe.
//
// As many as there are stages, as a rule: a pass costs a stage much the same whatever it holds, so
// every group more makes each of them wait for one more pass in every round. Where the host takes
// about as long to bring a token back as a stage takes with a pass, one more: then no stage waits
// for the host.
#ifndef TRINE_RUNTIME_PASS_GROUPS_H_
#define TRINE_RUNTIME_PASS_GROUPS_H_

#include <chrono>
#include <cstdint>

namespace trine {

class PassGroups {
 public:
  using Duration = std::chrono::nanoseconds;

  // `patient_alone`: one stage waits for others, too (patience).
  explicit PassGroups(int64_t stages, bool patient_alone = false)
      : stages_(stages), patient_(stages > 1 || patient_alone) {}

  // A pass of one token for each sequence: the time in its slowest stage.
  void StageTook(Duration time);
  // From the end of a pass until the next token of one of its sequences was there.
  void HostTook(Duration time);

  int64_t count() const { return stages_ > 1 && spare_ ? stages_ + 1 : stages_; }
  int64_t most() const { return stages_ > 1 ? stages_ + 1 : 1; }
  // How long a pass that is not full waits for sequences that have just been given their logits.
  // Each may be its own thread's, and who is first would go alone, in this round and in all that
  // follow. 0 where the host takes too long for that.
  Duration patience() const;

 private:
  void Decide();

  int64_t stages_;
  bool patient_;
  double stage_ns_ = 0, host_ns_ = 0;  // 0: not known yet
  bool spare_ = false;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_PASS_GROUPS_H_
