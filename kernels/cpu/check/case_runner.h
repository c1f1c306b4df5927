// Runs an operation of the scalar reference and of a level's kernels, on destinations with the same
// bytes, and compares the destinations afterwards.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/check/check.h"
#include "kernels/cpu/levels/kernel_table.h"
#include "kernels/cpu/levels/levels.h"
#include "kernels/quant/test_util.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/test_tensor.h"

namespace trine::cpu_kernels {

class CaseRunner {
 public:
  // `report` outlives the runner.
  CaseRunner(const KernelTable& table, CheckReport* report)
      : table_(table), f16_heeds_flushing_(F16HeedsFlushing(table)), report_(report) {}

  // Compares an operation that writes to dst. run(table, range) does the part `range` of its
  // `units`. The kernels get the range in two pieces, the last one first; once with denormals kept
  // and once with denormals flushed. Leaves out the second run if the operation `uses_f16` and
  // F16HeedsFlushing is true.
  template <typename Run>
  void Compare(const std::string& what, const reference::Tensor& dst, int64_t units, Run run,
               bool uses_f16 = false) {
    const std::vector<std::byte> before = dst.bytes();
    run(kReferenceLevel, Range{0, units});
    const std::vector<std::byte> expected = dst.bytes();
    const int64_t middle = (units + 1) / 3;
    for (const bool flush : {false, true}) {
      if (flush && uses_f16 && f16_heeds_flushing_) continue;
      std::copy(before.begin(), before.end(), dst.view().data);
      {
        std::optional<quant::ScopedFlushToZero> flush_to_zero;
        if (flush) flush_to_zero.emplace();
        run(table_, Range{middle, units});
        run(table_, Range{0, middle});
      }
      report_->Expect(dst.bytes() == expected,
                      [&] { return Describe(what, flush, expected, dst.bytes()); });
    }
  }

 private:
  static std::string Describe(const std::string& what, bool flush,
                              const std::vector<std::byte>& expected,
                              const std::vector<std::byte>& found);

  const KernelTable& table_;
  const bool f16_heeds_flushing_;
  CheckReport* report_;
};

}  // namespace trine::cpu_kernels
