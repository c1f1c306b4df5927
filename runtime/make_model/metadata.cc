#include "runtime/make_model/metadata.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/make_model/family.h"

namespace trine {
namespace {

// Sets keys of the form ARCH.name.
class Keys {
 public:
  Keys(const char* architecture, gguf::Builder* builder)
      : architecture_(architecture), builder_(*builder) {}

  void Integer(const char* name, int64_t value) {
    builder_.SetUint32(Key(name), static_cast<uint32_t>(value));
  }
  void Float(const char* name, double value) {
    builder_.SetFloat32(Key(name), static_cast<float>(value));
  }
  void String(const char* name, const char* value) { builder_.SetString(Key(name), value); }
  // Zero: the model has no such thing, and its file no such key.
  void IntegerIfAny(const char* name, int64_t value) {
    if (value != 0) Integer(name, value);
  }
  void FloatIfAny(const char* name, double value) {
    if (value != 0) Float(name, value);
  }

 private:
  std::string Key(const char* name) const { return absl::StrCat(architecture_, ".", name); }

  const char* const architecture_;
  gguf::Builder& builder_;
};

void SetRope(const ModelShape& shape, Keys* keys) {
  const RopeShape& rope = shape.rope;
  keys->Integer("rope.dimension_count", rope.dims > 0 ? rope.dims : shape.head_dim);
  keys->Float("rope.freq_base", rope.base);
  keys->FloatIfAny("rope.freq_base_swa", rope.window_base);
  switch (rope.scaling) {
    case RopeScaling::kNone:
    case RopeScaling::kLlama3:  // the factors' tensor says it all
      return;
    case RopeScaling::kLinear:
      keys->String("rope.scaling.type", "linear");
      keys->Float("rope.scaling.factor", rope.factor);
      return;
    case RopeScaling::kYarn:
      keys->String("rope.scaling.type", "yarn");
      keys->Float("rope.scaling.factor", rope.factor);
      keys->Integer("rope.scaling.original_context_length", rope.original_context);
      return;
    case RopeScaling::kLongRope:  // files of Phi 3 have no key for the type
      keys->Integer("rope.scaling.original_context_length", rope.original_context);
      keys->Float("rope.scaling.attn_factor", rope.attention_factor);
      return;
  }
}

}  // namespace

void SetMetadata(const ModelShape& shape, gguf::Builder* builder) {
  builder->SetString("general.architecture", shape.architecture);
  builder->SetString("general.type", "model");
  builder->SetString("general.name", absl::StrCat("random ", shape.name));
  Keys keys(shape.architecture, builder);
  keys.Integer("vocab_size", shape.vocab);
  keys.Integer("context_length", shape.ctx);
  keys.Integer("embedding_length", shape.embd);
  keys.Integer("block_count", shape.layers);
  keys.Integer("feed_forward_length", shape.ff);
  keys.Integer("attention.head_count", shape.heads);
  keys.Integer("attention.head_count_kv", shape.kv_heads);
  keys.Integer("attention.key_length", shape.head_dim);
  keys.Integer("attention.value_length", shape.head_dim);
  keys.Float(FindFamily(shape.architecture)->layer_norm ? "attention.layer_norm_epsilon"
                                                        : "attention.layer_norm_rms_epsilon",
             shape.norm_eps);
  SetRope(shape, &keys);
  keys.IntegerIfAny("attention.sliding_window", shape.window);
  keys.FloatIfAny("attention.scale", shape.attention_scale);
  keys.FloatIfAny("attn_logit_softcapping", shape.attention_softcap);
  keys.FloatIfAny("final_logit_softcapping", shape.final_softcap);
  keys.FloatIfAny("embedding_scale", shape.embedding_scale);
  keys.FloatIfAny("residual_scale", shape.residual_scale);
  keys.FloatIfAny("logit_scale", shape.logit_scale);
  keys.IntegerIfAny("expert_count", shape.experts);
  keys.IntegerIfAny("expert_used_count", shape.experts_used);
  keys.IntegerIfAny("expert_feed_forward_length", shape.expert_ff);
  keys.IntegerIfAny("expert_shared_feed_forward_length", shape.shared_ff);
}

}  // namespace trine
