// Which positions the tokens of a batch see. Part of attention.cc.

#ifndef TRINE_KERNELS_CPU_ATTENTION_SEQUENCES_H_
#define TRINE_KERNELS_CPU_ATTENTION_SEQUENCES_H_

#include <cstdint>

#include "kernels/cpu/attention_block.h"
#include "kernels/cpu/rows.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// The sequence of each token; asked for in increasing order it looks at each offset once.
class Sequences {
 public:
  explicit Sequences(const View& q_offsets)
      : offsets_(Ints(q_offsets)), count_(q_offsets.dims[0] - 1) {}

  // -1 for a token of no sequence.
  int64_t Of(int64_t token) {
    if (at_ < count_ && token < offsets_[at_]) at_ = 0;
    for (; at_ < count_; ++at_) {
      if (token < offsets_[at_]) return -1;
      if (token < offsets_[at_ + 1]) return at_;
    }
    return -1;
  }

 private:
  const int32_t* offsets_;
  int64_t count_;
  int64_t at_ = 0;
};

// The positions that a token of the sequence sees; none for a token of no sequence, -1.
inline Range Visible(const Call& call, int64_t sequence, int64_t token) {
  if (sequence < 0) return {};
  const int64_t kv_length = Ints(call.in.kv_lengths)[sequence];
  const int64_t position = kv_length - Ints(call.in.q_offsets)[sequence + 1] + token;
  Range visible = {0, kv_length};
  if (call.params.causal) visible.end = Least(visible.end, position + 1);
  if (call.params.window > 0) visible.begin = Most(0, position - call.params.window + 1);
  return visible;
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_ATTENTION_SEQUENCES_H_
