// Compares a level's kernels with the scalar reference, bit for bit. Uses no test framework,
// because it serves the tests of this folder and also trine-kernel-check, which is built for other
// processors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cpu/levels/kernel_table.h"

namespace trine::cpu_kernels {

// The comparisons made and the differences found. Not thread-safe.
class CheckReport {
 public:
  // Counts one comparison. If it failed, calls `describe`, which returns a std::string.
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

// How many cases a check compares. kSome is for kernels that run slowly, under an emulator: it has
// every type, and some of the shapes and values.
enum class Extent { kSome, kAll };

// Compares quantize_activations: rows of odd lengths, values of every size, halves between two
// integers, denormals flushed and kept.
void CheckActivations(const KernelTable& table, CheckReport* report);

// Compares matmul, moe_matmul and gather_rows of packed weights: every type, odd shapes, rows at
// any alignment a type allows, values of every size, split ranges, denormals flushed and kept.
void CheckProducts(const KernelTable& table, Extent extent, CheckReport* report);

// Compares every operation but matrix products, expert routing and attention: odd shapes, paddings,
// split ranges, operations in place, adversarial values, denormals kept and flushed.
void CheckFloatOps(const KernelTable& table, CheckReport* report);

// Compares attention: `cases` random cases, groups of heads, and heads wider than any tile.
void CheckAttention(const KernelTable& table, Extent extent, int cases, CheckReport* report);

// Compares the functions of vec_math.h at every `stride`-th bit pattern, and near the arguments
// where a function changes its formula.
void CheckMath(const KernelTable& table, uint32_t stride, CheckReport* report);

// Returns whether the level's f16 conversions take denormal halves for zero while denormal floats
// are flushed. No processor does that, but qemu 7.2's F16C does. Cases with f16 are then compared
// with denormals kept only.
bool F16HeedsFlushing(const KernelTable& table);

}  // namespace trine::cpu_kernels
