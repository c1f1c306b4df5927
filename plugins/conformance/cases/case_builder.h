// Builds a graph together with the data of its slots. The data is made from a seed and is the same
// on every machine, which no distribution of the standard library promises.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/conformance/cases/device_plan.h"
#include "plugins/conformance/cases/graph_spec.h"

namespace trine::conformance {

class Random {  // splitmix64
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }
  float Unit() { return static_cast<float>(Next() >> 40) * 0x1p-24f; }  // in [0, 1)
  // Returns a value of a bell curve around 0 with a deviation of about 1: a sum of twelve uniform
  // values.
  float Bell();

 private:
  uint64_t state_;
};

// The distribution of activations. Every value is canonical (docs/numerics.md), as the contract
// promises to kernels.
enum class Spread32 {
  kBell,  // as in a model
  kWide,  // every exponent from 2^-50 to 2^50
  kTiny,  // around the smallest magnitude
  kZeros,
  kOutliers,  // bell-shaped with a few values a thousand times larger
};

// Fills rows of any weight or cache type; `bytes` must hold whole blocks. Scales are finite, as the
// loader guarantees; codes take every value of the format.
void FillWeights(Random& random, uint32_t dtype, Spread32 spread, std::byte* data, size_t bytes);
// Fills a KV cache with stored values.
void FillCache(Random& random, uint32_t dtype, std::byte* data, size_t bytes);

// A graph, the contents of its slots, and the parameters to run it with.
struct OpCase {
  GraphSpec graph;
  Images images;
  std::vector<int64_t> params;
  // True if the data is also valid for one token. Then the same plan is run with one token, too.
  bool scales_down = true;
  // True if magnitudes exceed f16's range. Such a case is for EXACT answers only.
  bool extreme = false;
};

// Builds an OpCase. Each method from Input to Temp adds a tensor in a new slot (with gaps if
// `gapped` is set), fills the slot and returns the tensor's index.
class CaseBuilder {
 public:
  CaseBuilder(Random& random, Spread32 spread, bool gapped = false)
      : random_(random), spread_(spread), gapped_(gapped) {
    case_.extreme = spread == Spread32::kWide || spread == Spread32::kTiny;
  }

  // Adds a parameter that is `value` in the run and at most `max`.
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
