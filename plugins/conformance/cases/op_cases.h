// The test cases of each op: odd shapes, every type, data of every kind.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plugins/conformance/cases/case_builder.h"

namespace trine::conformance {

// Cases that are reported together: one op with one type.
struct OpGroup {
  std::string name;  // "matmul/q4_0"
  std::function<std::vector<OpCase>(Random&)> make;
};

// The types of trine/backend.h that weights and caches may have.
const std::vector<uint32_t>& WeightTypes();
const std::vector<uint32_t>& CacheTypes();

// Append the groups of some ops.
void AddElementWiseGroups(std::vector<OpGroup>* groups);
void AddMatrixGroups(std::vector<OpGroup>* groups);
void AddAttentionGroups(std::vector<OpGroup>* groups);
void AddMoeGroups(std::vector<OpGroup>* groups);
std::vector<OpGroup> AllOpGroups();

// Makes a transformer layer: norm, q/k/v products, rope, kv_store, attention, residual, gated MLP.
OpCase TransformerLayer(Random& random, uint32_t weight_dtype, uint32_t cache_dtype,
                        int64_t tokens);

// Makes a chain of products. Each reads all values of the product before it, however the workers
// share the work. With `mix_rows`, additions also mix rows of the first product.
OpCase MatmulChain(Random& random, uint32_t dtype, bool mix_rows);

// Makes small graphs of one op each, the simplest first. A plugin that supports any op supports at
// least one of them.
std::vector<OpCase> ProbeCases(Random& random);
// Makes a product of w [k, n], which has the type, with x [k, tokens].
OpCase MatmulCase(Random& random, uint32_t dtype, int64_t k, int64_t n, int64_t tokens, bool bias,
                  Spread32 spread, bool gapped = false);
// Makes a product with w [k, n, experts], which has the type. Each token goes to two experts.
OpCase MoeMatmulCase(Random& random, uint32_t dtype, int64_t k, int64_t n, int64_t experts);
// Makes a kv_store into a cache of the type, and an attention over two such caches.
std::vector<OpCase> CacheCases(Random& random, uint32_t dtype);

}  // namespace trine::conformance
