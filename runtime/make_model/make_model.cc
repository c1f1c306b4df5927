#include "runtime/make_model/make_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/part_reader.h"
#include "runtime/gguf/writer.h"
#include "runtime/make_model/vocabulary.h"
#include "runtime/make_model/weights.h"

namespace trine {
namespace {

using quant::Type;

gguf::TensorInfo InfoOf(const TensorSpec& tensor) {
  gguf::TensorInfo info;
  info.name = tensor.name;
  info.rank = static_cast<uint32_t>(tensor.dims.size());
  std::copy(tensor.dims.begin(), tensor.dims.end(), info.dims);
  return info;
}

quantize::ModelFacts FactsOf(const ModelShape& shape) {
  return {.layers = shape.layers,
          .experts = std::max<int64_t>(shape.experts, 1),
          .shares_heads = shape.heads / shape.kv_heads >= 4,
          .tied_output = shape.tied};
}

// Files with a single K type have the name of its smallest mix.
std::string FileTypeOf(Type type) {
  const std::string name = gguf::TensorTypeName(type);
  const bool has_mixes = type == Type::kQ3_K || type == Type::kQ4_K || type == Type::kQ5_K;
  return has_mixes ? name + "_S" : name;
}

// Sets the types that quantising the model would give: the types of `mix` or, if `pure` is true,
// its base type for all matrices. If `mix` is null, the shape's own types stay. Replaces a type by
// the next type that fits if rows are not whole blocks of it. Returns the name of the file's type.
std::string ChooseTypes(const ModelShape& shape, const quantize::Mix* mix, bool pure,
                        std::vector<TensorSpec>* tensors) {
  const quantize::ModelFacts facts = FactsOf(shape);
  for (TensorSpec& tensor : *tensors) {
    const gguf::TensorInfo info = InfoOf(tensor);
    if (quantize::RoleOf(info) == quantize::Role::kKept) continue;
    if (mix != nullptr) tensor.type = pure ? mix->base : quantize::MixedType(*mix, info, facts);
    tensor.type = quantize::FittingType(tensor.type, tensor.dims[0]);
  }
  if (mix != nullptr) return mix->name;
  return FileTypeOf(shape.experts > 0 ? shape.expert_type : shape.type);
}

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
  // 0: the model does not have the feature, so its file does not have the key.
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
    case RopeScaling::kLlama3:  // needs no key: the file has the factors
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

// Sets the keys that converters write for the architecture.
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

}  // namespace

double ModelPlan::BitsPerWeight() const {
  return 8 * static_cast<double>(bytes) / static_cast<double>(parameters);
}

absl::StatusOr<ModelPlan> PlanModel(const ModelShape& shape, const MakeModelOptions& options) {
  const absl::Status status = CheckShape(shape);
  if (!status.ok()) return status;
  if (options.mix != nullptr && options.mix->copy) {
    return Invalid(options.mix->name, " is no type a new model can have");
  }
  ModelPlan plan;
  SetMetadata(shape, &plan.builder);
  plan.tensors = ListTensors(shape);
  const std::string file_type = ChooseTypes(shape, options.mix, options.pure, &plan.tensors);
  if (const auto number = gguf::FileTypeNumber(file_type)) {
    plan.builder.SetUint32(gguf::kFileTypeKey, *number);
  }
  plan.builder.SetUint32(gguf::kQuantizationVersionKey, gguf::kQuantizationVersion);
  SetVocabulary(shape, &plan.builder);
  for (const TensorSpec& tensor : plan.tensors) {
    plan.builder.AddTensor(tensor.name, tensor.type, tensor.dims);
    plan.parameters += static_cast<uint64_t>(tensor.dims[0] * tensor.rows());
  }
  if (!plan.builder.status().ok()) return plan.builder.status();
  for (const gguf::Builder::Tensor& tensor : plan.builder.tensors()) plan.bytes += tensor.bytes;
  return plan;
}

absl::Status MakeModel(const ModelShape& shape, const MakeModelOptions& options,
                       const std::string& path, const MakeModelProgress& progress) {
  absl::StatusOr<ModelPlan> plan = PlanModel(shape, options);
  if (!plan.ok()) return plan.status();
  auto writer = gguf::Writer::Create(path, std::move(plan->builder),
                                     {.max_part_bytes = options.max_part_bytes});
  if (!writer.ok()) return writer.status();
  WeightMaker maker(options.seed, options.threads);
  uint64_t done = 0;
  for (const TensorSpec& tensor : plan->tensors) {
    const absl::Status status = maker.Make(tensor, [&](absl::Span<const std::byte> data) {
      absl::Status written = (*writer)->Write(data);
      done += data.size();
      const double fraction = static_cast<double>(done) / static_cast<double>(plan->bytes);
      if (!written.ok() || !progress || progress(fraction)) return written;
      return absl::CancelledError(absl::StrCat(path, ": given up; nothing was written"));
    });
    if (!status.ok()) return status;
  }
  return (*writer)->Finish();
}

}  // namespace trine
