// The cases of a device's self-test: every exact shader that its ops may use, and every way ops
// are put together. self_test_cases_test.cc holds them to that.
#ifndef TRINE_BACKENDS_COMMON_SELF_TEST_CASES_H_
#define TRINE_BACKENDS_COMMON_SELF_TEST_CASES_H_

#include <functional>

#include "backends/common/self_test_graph.h"

namespace trine::backends {

// Takes a graph, whose tensors are gone afterwards.
using TakeGraph = std::function<void(const TestGraph&)>;

// Each op by itself.
void AddOpCases(const TakeGraph& take, quant::Random* random);
// Ops that run as one, and what quantises its results for a product that follows.
void AddGroupCases(const TakeGraph& take, quant::Random* random);

// All of them, the same ones each time.
void AddSelfTestCases(const TakeGraph& take);

// A cache of all positions of its blocks, as a device would have stored them.
void FillCache(TestTensor* cache, quant::Random* random);

// What attention reads besides q: `blocks` blocks of 64 positions with 2 heads of 64 values, of
// which one sequence has all but the last 20.
struct TestCache {
  TestCache(quant::Type type, int32_t blocks, int32_t tokens, quant::Random* random);
  void Attend(TestTensor* q, TestTensor* y, TestGraph* graph);

  TestTensor k, v, table, offsets, lengths;
};

}  // namespace trine::backends

#endif  // TRINE_BACKENDS_COMMON_SELF_TEST_CASES_H_
