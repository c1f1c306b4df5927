// Builds a graph together with the data of its slots.
#ifndef TRINE_PLUGINS_CONFORMANCE_CASE_BUILDER_H_
#define TRINE_PLUGINS_CONFORMANCE_CASE_BUILDER_H_

#include <vector>

#include "plugins/conformance/device_plan.h"
#include "plugins/conformance/graph_spec.h"
#include "plugins/conformance/random_data.h"

namespace trine::conformance {

// A graph, what its slots hold, and the parameters to run it with.
struct OpCase {
  GraphSpec graph;
  Images images;
  std::vector<int64_t> params;
  // The data is as good for fewer tokens: the same plan is run with 1 token, too.
  bool scales_down = true;
  // Magnitudes an f16 can't hold: for EXACT answers only.
  bool extreme = false;
};

// Each method adds a tensor with a slot of its own, or a view with gaps when `gapped` is set, fills
// the slot and returns the tensor's index.
class CaseBuilder {
 public:
  CaseBuilder(Random& random, Spread32 spread, bool gapped = false)
      : random_(random), spread_(spread), gapped_(gapped) {
    case_.extreme = spread == Spread32::kWide || spread == Spread32::kTiny;
  }

  // A parameter that is `value` in the run and at most `max`.
  int64_t Param(uint32_t kind, int64_t value, int64_t max);
  int64_t Tokens(int64_t value, int64_t max) { return Param(TRINE_PARAM_TOKENS, value, max); }

  uint32_t Input(std::vector<int64_t> dims) { return Input(std::move(dims), spread_); }
  uint32_t Input(std::vector<int64_t> dims, Spread32 spread);
  uint32_t Weight(uint32_t dtype, std::vector<int64_t> dims);
  uint32_t Cache(uint32_t dtype, std::vector<int64_t> dims);
  uint32_t Ints(std::vector<int64_t> dims, const std::vector<int32_t>& values);
  uint32_t Output(uint32_t dtype, std::vector<int64_t> dims);
  uint32_t Output(std::vector<int64_t> dims) { return Output(TRINE_DTYPE_F32, std::move(dims)); }
  uint32_t Temp(std::vector<int64_t> dims);

  GraphSpec& graph() { return case_.graph; }
  Random& random() { return random_; }
  OpCase Take() { return std::move(case_); }
  OpCase TakeFixed() {
    case_.scales_down = false;
    return Take();
  }

 private:
  uint32_t Add(uint32_t role, uint32_t dtype, std::vector<int64_t> dims);
  // Calls fill(row, row_bytes) for each row at the parameters' maxima.
  template <class Fill>
  void FillRows(uint32_t tensor, Fill fill);

  Random& random_;
  Spread32 spread_;
  bool gapped_;
  OpCase case_;
};

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_CASE_BUILDER_H_
