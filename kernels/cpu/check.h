// A level's kernels compared with the scalar reference, bit for bit, without a test framework: for
// the test beside this file, and for trine-kernel-check, which is built for other processors.

#ifndef TRINE_KERNELS_CPU_CHECK_H_
#define TRINE_KERNELS_CPU_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cpu/kernel_table.h"

namespace trine::cpu_kernels {

// What was compared and what differed. Not thread-safe.
class CheckReport {
 public:
  // One comparison; `describe` is called, and must return a std::string, when it went wrong.
  template <typename Describe>
  void Expect(bool equal, Describe describe) {
    ++cases_;
    if (equal) return;
    ++mismatches_;
    if (messages_.size() < kMaxMessages) messages_.push_back(describe());
  }

  int64_t cases() const { return cases_; }
  int64_t mismatches() const { return mismatches_; }
  const std::vector<std::string>& messages() const { return messages_; }  // the first few

 private:
  static constexpr size_t kMaxMessages = 20;
  int64_t cases_ = 0;
  int64_t mismatches_ = 0;
  std::vector<std::string> messages_;
};

// quantize_activations, matmul and moe_matmul: every type, odd shapes, rows at any alignment a type
// allows, values of every size, split ranges, denormals flushed and kept.
void CheckMatrixOps(const KernelTable& table, CheckReport* report);

}  // namespace trine::cpu_kernels

#endif  // TRINE_KERNELS_CPU_CHECK_H_
