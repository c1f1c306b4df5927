// The cases each op is put to: odd shapes, every type, data of every kind.
#ifndef TRINE_PLUGINS_CONFORMANCE_OP_CASES_H_
#define TRINE_PLUGINS_CONFORMANCE_OP_CASES_H_

#include <functional>
#include <string>
#include <vector>

#include "plugins/conformance/case_builder.h"

namespace trine::conformance {

// Cases that stand or fall together: one op with one type.
struct OpGroup {
  std::string name;  // "matmul/q4_0"
  std::function<std::vector<OpCase>(Random&)> make;
};

// Types a weight may have, from trine/backend.h.
const std::vector<uint32_t>& WeightTypes();
const std::vector<uint32_t>& CacheTypes();

void AddElementWiseGroups(std::vector<OpGroup>* groups);
void AddMatrixGroups(std::vector<OpGroup>* groups);
void AddAttentionGroups(std::vector<OpGroup>* groups);
void AddMoeGroups(std::vector<OpGroup>* groups);
std::vector<OpGroup> AllOpGroups();

// A layer of a transformer: norm, q/k/v products, rope, kv_store, attention, residual, gated MLP.
OpCase TransformerLayer(Random& random, uint32_t weight_dtype, uint32_t cache_dtype,
                        int64_t tokens);

// Products that read all values of the one before, however the work on it was shared out; to
// `mix_rows` also of other rows, by additions.
OpCase MatmulChain(Random& random, uint32_t dtype, bool mix_rows);

// Small graphs of one op, plainest first; a plugin that does anything does one of them.
std::vector<OpCase> ProbeCases(Random& random);
// w [k, n] of a type times x [k, tokens].
OpCase MatmulCase(Random& random, uint32_t dtype, int64_t k, int64_t n, int64_t tokens, bool bias,
                  Spread32 spread, bool gapped = false);
// w [k, n, experts] of a type; each token goes to two of them.
OpCase MoeMatmulCase(Random& random, uint32_t dtype, int64_t k, int64_t n, int64_t experts);
// A kv_store into a cache of a type, and an attention over two.
std::vector<OpCase> CacheCases(Random& random, uint32_t dtype);

}  // namespace trine::conformance

#endif  // TRINE_PLUGINS_CONFORMANCE_OP_CASES_H_
