#include "plugins/self_test/self_test_parts.h"

namespace trine::self_test {

using quant::Fill;
using quant::Random;
using quant::Type;

void FillCache(TestTensor* cache, Random* random) {
  const reference::View& view = cache->view;
  const int64_t positions = view.dims[1] * view.dims[3];
  TestTensor x(Type::kF32, {view.dims[0], view.dims[2], positions}), slots(Type::kI32, {positions});
  x.Floats(Fill::kUniform, random);
  for (int64_t i = 0; i < positions; ++i) {
    reinterpret_cast<int32_t*>(slots.view.data)[i] = static_cast<int32_t>(i);
  }
  reference::KvStore(x.view, slots.view, view, reference::AllRows(x.view));
}

TestCache::TestCache(Type type, int32_t blocks, int32_t tokens, Random* random)
    : k(type, {64, 64, 2, blocks}),
      v(type, {64, 64, 2, blocks}),
      table(Type::kI32, {blocks, 1}),
      offsets(Type::kI32, {2}),
      lengths(Type::kI32, {1}) {
  FillCache(&k, random);
  FillCache(&v, random);
  for (int32_t i = 0; i < blocks; ++i) {
    reinterpret_cast<int32_t*>(table.view.data)[i] = blocks - 1 - i;
  }
  offsets.Ints({0, tokens});
  lengths.Ints({64 * blocks - 20});
}

void TestCache::Attend(TestTensor* q, TestTensor* y, TestTensor* sinks,
                       reference::AttentionParams params, TestGraph* graph) {
  params.scale = 0.125f;
  std::vector<TestTensor*> in = {q, &k, &v, &table, &offsets, &lengths};
  if (sinks != nullptr) in.push_back(sinks);
  const trine_attention_attr attr{0, params.causal ? uint32_t{TRINE_ATTENTION_CAUSAL} : 0u,
                                  params.scale, params.softcap,
                                  static_cast<uint32_t>(params.window)};
  graph->Op(TRINE_OP_ATTENTION, in, {y}, attr, [this, q, y, sinks, params] {
    const reference::AttentionInputs inputs{q->view,
                                            k.view,
                                            v.view,
                                            table.view,
                                            offsets.view,
                                            lengths.view,
                                            sinks != nullptr ? &sinks->view : nullptr};
    reference::Attention(inputs, params, y->view, reference::AllRows(y->view));
  });
}

}  // namespace trine::self_test
