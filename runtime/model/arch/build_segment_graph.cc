
#include "runtime/model/arch/architecture.h"
#include "runtime/model/arch/layer_builder.h"
#include "runtime/model/arch/read_model.h"

namespace trine {
namespace {

// Adds the inputs that every segment has, whatever its layers.
void AddBatchInputs(const ModelConfig& config, const SegmentLimits& limits, SegmentGraph* s) {
  OpGraph& g = s->graph;
  const int64_t tokens = g.AddParam(TRINE_PARAM_TOKENS, 1, limits.max_tokens);
  const int64_t sequences = g.AddParam(TRINE_PARAM_SEQUENCES, 1, limits.max_sequences);
  g.AddParam(TRINE_PARAM_OUTPUT_ROWS, 1, limits.max_output_rows);
  g.AddParam(TRINE_PARAM_KV_POSITIONS, 1, limits.max_context);
  s->io.rope = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {config.rope.dims, tokens});
  if (config.rope_windowed.has_value()) {
    s->io.rope_windowed =
        g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {config.rope_windowed->dims, tokens});
  }
  s->io.kv_slots = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_I32, {tokens});
  s->io.block_table =
      g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_I32, {limits.max_blocks_per_sequence(), sequences});
  s->io.q_offsets = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_I32, {limits.max_sequences + 1});
  s->io.kv_lengths = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_I32, {sequences});
}

// Adds the final norm and the output matrix for the output rows; for embeddings alone, only the
// norm. Without output.weight it uses the embedding (tied weights).
void AddOutput(const ModelConfig& config, const SegmentLimits& limits, Tensor x, LayerBuilder* b,
               SegmentGraph* s) {
  OpGraph& g = s->graph;
  const int64_t rows = -1 - static_cast<int64_t>(kParamOutputRows);
  s->io.output_rows = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_I32, {rows});
  const Tensor h = b->Norm(b->PickRows(x, s->io.output_rows), "output_norm");
  if (!b->status().ok()) return;
  if (limits.embeddings || limits.hidden_rows) {
    s->io.embeddings = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {config.n_embd, rows});
    g.AddOp(TRINE_OP_COPY, {h.id}, {s->io.embeddings});
  }
  if (limits.embeddings) return;
  const std::string matrix = b->Has("output.weight") ? "output.weight" : "token_embd.weight";
  const TensorId weight = b->Weight(matrix, {config.n_embd, config.n_vocab}, false);
  TensorId bias = TRINE_NONE;
  if (b->Has("output.bias")) bias = b->Weight("output.bias", {config.n_vocab}, true);
  if (!b->status().ok()) return;
  // The last op writes to the memory that the logits are read from.
  s->io.logits = g.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {config.n_vocab, rows});
  const bool scaled = config.logit_scale != 1, capped = config.logit_softcap != 0;
  const auto output_of = [&](bool last) {
    return last ? s->io.logits : g.AddTemp({config.n_vocab, rows});
  };
  TensorId y = output_of(!scaled && !capped);
  g.AddOp(TRINE_OP_MATMUL, {weight, h.id, bias}, {y});
  if (scaled) {
    const TensorId x_scaled = output_of(!capped);
    g.AddOp(TRINE_OP_SCALE, {y}, {x_scaled}, trine_scale_attr{0, config.logit_scale});
    y = x_scaled;
  }
  if (capped) {
    g.AddOp(TRINE_OP_SOFTCAP, {y}, {s->io.logits}, trine_scale_attr{0, config.logit_softcap});
  }
}

}  // namespace

absl::StatusOr<SegmentGraph> BuildSegmentGraph(const gguf::File& file, const ModelConfig& config,
                                               const SegmentLimits& limits) {
  return BuildSegmentGraph(file, config, limits, {0, config.n_layers, true, true});
}

absl::StatusOr<SegmentGraph> BuildSegmentGraph(const gguf::File& file, const ModelConfig& config,
                                               const SegmentLimits& limits, const LayerSpan& span,
                                               const SegmentGraphOptions& options) {
  const auto architecture = FindArchitecture(config.architecture);
  if (!architecture.ok()) return architecture.status();
  SegmentGraph segment;
  segment.graph = OpGraph(limits.numerics);
  AddBatchInputs(config, limits, &segment);
  LayerBuilder b(file, config, limits, (*architecture)->rope_pairing, (*architecture)->norm,
                 &segment);
  b.set_in_place(options.in_place);
  b.set_division(options.division);
  const int64_t tokens = -1 - static_cast<int64_t>(kParamTokens);

  Tensor x;
  if (span.embedding) {
    segment.io.tokens = segment.graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_I32, {tokens});
    x = b.Embed(segment.io.tokens, "token_embd", config.n_vocab);
    x = b.Scale(x, config.embedding_scale);
    segment.ends.push_back({-1, segment.graph.n_ops(), x.id});
  } else {
    x = {segment.graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {config.n_embd, tokens})};
    segment.io.hidden_in = x.id;
  }
  for (int64_t layer = span.begin; layer < span.end; ++layer) {
    b.BeginLayer(layer);
    x = (*architecture)->layer(b, x);
    segment.ends.push_back({layer, segment.graph.n_ops(), x.id});
  }
  b.EndLayers();
  if (span.head) {
    AddOutput(config, limits, x, &b, &segment);
  } else if (b.status().ok()) {
    segment.io.hidden_out =
        segment.graph.AddTensor(TRINE_ROLE_IO, TRINE_DTYPE_F32, {config.n_embd, tokens});
    segment.graph.AddOp(TRINE_OP_COPY, {x.id}, {segment.io.hidden_out});
  }
  if (!b.status().ok()) return b.status();
  if (options.finish) segment.graph.Finish();
  return segment;
}

}  // namespace trine
