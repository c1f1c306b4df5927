// Parts of which the graphs of the self-test are made.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "plugins/self_test/self_test_graph.h"

namespace trine::self_test {

// Fills all positions of a cache's blocks as a device would have stored them.
void FillCache(TestTensor* cache, quant::Random* random);

// The inputs of attention except q: a cache of `blocks` blocks of 64 positions with 2 heads of 64
// values. One sequence has all positions but the last 20.
struct TestCache {
  TestCache(quant::Type type, int32_t blocks, int32_t tokens, quant::Random* random);
  // Adds attention to the graph. The scale is always the same. `sinks` may be null.
  void Attend(TestTensor* q, TestTensor* y, TestTensor* sinks, reference::AttentionParams params,
              TestGraph* graph);

  TestTensor k, v, table, offsets, lengths;
};

inline reference::AttentionParams NotCausal() {
  reference::AttentionParams params;
  params.causal = false;
  return params;
}

// Hands on a graph of one op.
template <class Attr>
void AddOp(const TakeGraph& take, std::string name, uint32_t kind,
           const std::vector<TestTensor*>& in, const std::vector<TestTensor*>& out, Attr attr,
           std::function<void()> reference) {
  take(TestGraph(std::move(name)).Op(kind, in, out, attr, std::move(reference)));
}

}  // namespace trine::self_test
