#include "runtime/quantize/plan.h"

#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/quoted.h"
#include "runtime/quantize/tensor_pattern.h"

namespace trine::quantize {
namespace {

using quant::Type;

struct Override {
  TensorPattern pattern;
  Type type;
  bool used = false;
};

absl::StatusOr<std::vector<Override>> Compile(const std::vector<TypeOverride>& overrides) {
  std::vector<Override> compiled;
  for (const TypeOverride& one : overrides) {
    auto pattern = TensorPattern::Create(one.pattern);
    if (!pattern.ok()) return pattern.status();
    compiled.push_back({*std::move(pattern), one.type});
  }
  return compiled;
}

// The keys that describe the importance matrix of a quantised file.
constexpr char kImportanceFileKey[] = "quantize.imatrix.file";
constexpr char kImportanceDatasetKey[] = "quantize.imatrix.dataset";
constexpr char kImportanceEntriesKey[] = "quantize.imatrix.entries_count";
constexpr char kImportanceChunksKey[] = "quantize.imatrix.chunks_count";

class Planner {
 public:
  Planner(const gguf::File& file, const PlanOptions& options, std::vector<Override> overrides)
      : file_(file), options_(options), facts_(FactsOf(file)), overrides_(std::move(overrides)) {}

  absl::StatusOr<Plan> Make() {
    for (const gguf::TensorInfo& tensor : file_.tensors()) {
      if (absl::Status s = Add(tensor); !s.ok()) return s;
    }
    for (const Override& one : overrides_) {
      if (one.used) continue;
      return Invalid(
          "the expression ", gguf::Quoted(one.pattern.text()),
          " matches no tensor that is quantised; 'trine show model --tensors' lists them");
    }
    SetMetadata();
    Warn();
    if (!plan_.builder.status().ok()) return plan_.builder.status();
    return std::move(plan_);
  }

 private:
  absl::StatusOr<Type> WantedType(const gguf::TensorInfo& tensor) {
    const Role role = RoleOf(tensor);
    const Mix& mix = *options_.mix;
    if (mix.copy || role == Role::kKept) return tensor.type;
    for (Override& one : overrides_) {
      const auto matches = one.pattern.Matches(tensor.name);
      if (!matches.ok()) return matches.status();
      if (!*matches) continue;
      one.used = true;
      return one.type;
    }
    const bool embedding = role == Role::kTokenEmbedding;
    const bool output = role == Role::kOutput || (embedding && facts_.tied_output);
    if (embedding && options_.embedding_type) return *options_.embedding_type;
    if (output && options_.leave_output) return tensor.type;
    if (output && options_.output_type) return *options_.output_type;
    return options_.pure ? mix.base : MixedType(mix, tensor, facts_);
  }

  absl::Status Add(const gguf::TensorInfo& tensor) {
    const auto wanted = WantedType(tensor);
    if (!wanted.ok()) return wanted.status();
    PlannedTensor planned;
    planned.source = &tensor;
    planned.wanted = *wanted;
    planned.type = FittingType(*wanted, tensor.dims[0]);
    if (!planned.copied() && quant::IsQuantized(tensor.type) && quant::IsQuantized(planned.type) &&
        !options_.allow_requantize) {
      return Invalid("the tensor ", gguf::Quoted(tensor.name), " is ",
                     gguf::TensorTypeName(tensor.type),
                     " already: making another type of it loses twice. Quantise from F16, BF16 "
                     "or F32, or allow it with --allow-requantize");
    }
    const absl::Status status = AddImportance(tensor, &planned);
    if (!status.ok()) return status;
    plan_.builder.AddTensor(tensor.name, planned.type,
                            absl::MakeConstSpan(tensor.dims, tensor.rank));
    if (!plan_.builder.status().ok()) return plan_.builder.status();
    planned.bytes = plan_.builder.tensors().back().bytes;
    plan_.source_bytes += tensor.bytes;
    plan_.bytes += planned.bytes;
    plan_.parameters += static_cast<uint64_t>(tensor.dims[0] * tensor.Rows());
    if (planned.type != planned.wanted) ++fallbacks_;
    plan_.tensors.push_back(planned);
    return absl::OkStatus();
  }

  absl::Status AddImportance(const gguf::TensorInfo& tensor, PlannedTensor* planned) {
    if (options_.importance == nullptr || planned->copied() || !quant::IsQuantized(planned->type)) {
      return absl::OkStatus();
    }
    const absl::Span<const float> weights = options_.importance->Find(tensor.name);
    const auto columns = static_cast<size_t>(tensor.dims[0]);
    const auto matrices = static_cast<size_t>(tensor.dims[2] * tensor.dims[3]);
    if (weights.empty()) {
      // The embedding is looked up, not multiplied, so its importance is never measured.
      if (RoleOf(tensor) != Role::kTokenEmbedding) ++without_importance_;
    } else if (weights.size() == columns || weights.size() == columns * matrices) {
      planned->importance = weights;
    } else if (RoleOf(tensor) != Role::kTokenEmbedding) {
      return Invalid("the importance of the tensor ", gguf::Quoted(tensor.name), " has ",
                     weights.size(), " values, for ", columns, " columns of ", matrices,
                     matrices == 1 ? " matrix" : " matrices", ": it was measured on another model");
    }
    return absl::OkStatus();
  }

  void SetMetadata() {
    gguf::Builder& builder = plan_.builder;
    builder.CopyMetadata(file_.metadata());
    const auto file_type = gguf::FileTypeNumber(options_.mix->name);
    if (!file_type) return;  // a copy keeps its file type
    // Drops the description of the matrix that the source was quantised with.
    for (const char* key :
         {kImportanceFileKey, kImportanceDatasetKey, kImportanceEntriesKey, kImportanceChunksKey}) {
      builder.Remove(key);
    }
    builder.SetUint32(gguf::kFileTypeKey, *file_type);
    builder.SetUint32(gguf::kQuantizationVersionKey, gguf::kQuantizationVersion);
    if (options_.importance == nullptr) return;
    // Without the folder, so that the same matrix gives the same bytes wherever it is.
    const std::string name = std::filesystem::path(options_.importance_path).filename().string();
    builder.SetString(kImportanceFileKey, name);
    builder.SetString(kImportanceDatasetKey, options_.importance->dataset());
    builder.SetUint32(kImportanceEntriesKey, static_cast<uint32_t>(options_.importance->tensors()));
    builder.SetUint32(kImportanceChunksKey, static_cast<uint32_t>(options_.importance->chunks()));
  }

  void Warn() {
    if (fallbacks_ > 0) {
      plan_.warnings.push_back(absl::StrCat(
          fallbacks_, " of ", plan_.tensors.size(),
          " tensors get a larger type: their rows are no multiple of the type's block"));
    }
    if (without_importance_ > 0) {
      plan_.warnings.push_back(absl::StrCat("the importance matrix does not know ",
                                            without_importance_, " of the tensors quantised"));
    }
  }

  const gguf::File& file_;
  const PlanOptions& options_;
  const ModelFacts facts_;
  std::vector<Override> overrides_;
  Plan plan_;
  int64_t fallbacks_ = 0;
  int64_t without_importance_ = 0;
};

}  // namespace

double Plan::BitsPerWeight() const {
  return parameters == 0 ? 0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(parameters);
}

absl::StatusOr<Plan> MakePlan(const gguf::File& file, const PlanOptions& options) {
  if (options.mix == nullptr) return absl::InvalidArgumentError("no type to quantise to");
  auto overrides = Compile(options.overrides);
  if (!overrides.ok()) return overrides.status();
  return Planner(file, options, *std::move(overrides)).Make();
}

}  // namespace trine::quantize
