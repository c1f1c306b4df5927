#include "tests/model/tiny_model.h"

#include <cmath>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/quant/test_util.h"
#include "runtime/gguf/test_bytes.h"

namespace trine {
namespace {

using quant::Random;
using quant::Type;

// Returns the letter that byte-level BPE writes for a byte.
std::string ByteLetter(int byte) {
  const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
                         (byte >= 0xae && byte <= 0xff);
  int code = byte;
  if (!printable) {
    code = 256;
    for (int b = 0; b < byte; ++b) {
      const bool p = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
      if (!p) ++code;
    }
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))};
}

struct Merge {
  const char* left;
  const char* right;
};
constexpr Merge kMerges[] = {{"t", "h"}, {"th", "e"}, {"i", "n"}, {"a", "n"}, {"an", "d"}};

void AddVocabulary(gguf::Builder* b) {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<std::string> merges;
  for (int i = 0; i < 256; ++i) tokens.push_back(ByteLetter(i));
  for (const Merge& m : kMerges) {
    tokens.push_back(std::string(m.left) + m.right);
    merges.push_back(std::string(m.left) + " " + m.right);
  }
  types.assign(tokens.size(), 1);
  for (const char* control : {"<|begin|>", "<|end|>"}) {
    tokens.push_back(control);
    types.push_back(3);
  }
  b->SetString("tokenizer.ggml.model", "gpt2");
  b->SetString("tokenizer.ggml.pre", "gpt-2");
  b->SetStrings("tokenizer.ggml.tokens", tokens);
  b->SetInt32s("tokenizer.ggml.token_type", types);
  b->SetStrings("tokenizer.ggml.merges", merges);
  const auto n = static_cast<uint32_t>(tokens.size());
  b->SetUint32("tokenizer.ggml.bos_token_id", n - 2);
  b->SetUint32("tokenizer.ggml.eos_token_id", n - 1);
  b->SetBool("tokenizer.ggml.add_bos_token", false);
}

// Makes rows that give about unit output for inputs of about unit size.
std::vector<std::byte> RandomMatrix(Type type, int64_t k, int64_t rows, Random* random) {
  const float scale = 1.7f / std::sqrt(static_cast<float>(k));
  uint64_t row_bytes = 0;
  quant::RowBytes(type, k, &row_bytes);
  std::vector<std::byte> out(row_bytes * static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) {
    std::byte* row = out.data() + static_cast<size_t>(r) * row_bytes;
    for (int64_t i = 0; i < k; ++i) {
      const float x = scale * random->Uniform();
      const uint16_t half = quant::F32ToF16(x);
      if (type == Type::kF32) std::memcpy(row + i * 4, &x, 4);
      if (type == Type::kF16) std::memcpy(row + i * 2, &half, 2);
      if (type == Type::kQ8_0) {
        auto& block = reinterpret_cast<quant::BlockQ8_0*>(row)[i / 32];
        block.d = quant::F32ToF16(scale / 127.0f);
        block.q[i % 32] = static_cast<int8_t>(random->Below(255) - 127);
      }
    }
  }
  return out;
}

class Maker {
 public:
  explicit Maker(const TinyModelSpec& spec) : spec_(spec), random_(spec.seed) {}

  TinyModel Make() {
    Numbers();
    AddVocabulary(&model_.builder);
    const int64_t vocab = TinyVocabularySize();
    Matrix("token_embd.weight", spec_.n_embd, vocab);
    for (int64_t layer = 0; layer < spec_.n_layers; ++layer) Layer(layer);
    Vector("output_norm.weight", spec_.n_embd, 1.0f);
    if (!spec_.tied) Matrix("output.weight", spec_.n_embd, vocab);
    if (spec_.rope_factors) RopeFactors();
    return std::move(model_);
  }

 private:
  void Numbers() {
    gguf::Builder& b = model_.builder;
    const auto key = [&](const char* name) { return spec_.architecture + "." + name; };
    const auto set = [&](const char* name, int64_t value) {
      b.SetUint32(key(name), static_cast<uint32_t>(value));
    };
    b.SetString("general.architecture", spec_.architecture);
    b.SetString("general.name", "tiny " + spec_.architecture);
    set("block_count", spec_.n_layers);
    set("embedding_length", spec_.n_embd);
    set("feed_forward_length", spec_.n_ff);
    set("context_length", spec_.n_ctx);
    set("attention.head_count", spec_.n_heads);
    set("attention.head_count_kv", spec_.n_kv_heads);
    set("attention.key_length", spec_.head_dim);
    set("attention.value_length", spec_.head_dim);
    set("rope.dimension_count", spec_.head_dim);
    b.SetFloat32(key("rope.freq_base"), 10000.0f);
    b.SetFloat32(key("attention.layer_norm_rms_epsilon"), 1e-5f);
    if (spec_.rope_scale != 1) {
      b.SetString(key("rope.scaling.type"), "linear");
      b.SetFloat32(key("rope.scaling.factor"), static_cast<float>(spec_.rope_scale));
    }
  }

  void Layer(int64_t layer) {
    const auto name = [&](const char* part) { return absl::StrCat("blk.", layer, ".", part); };
    const int64_t q = spec_.n_heads * spec_.head_dim;
    const int64_t kv = spec_.n_kv_heads * spec_.head_dim;
    Vector(name("attn_norm.weight"), spec_.n_embd, 1.0f);
    Matrix(name("attn_q.weight"), spec_.n_embd, q);
    Matrix(name("attn_k.weight"), spec_.n_embd, kv);
    Matrix(name("attn_v.weight"), spec_.n_embd, kv);
    Matrix(name("attn_output.weight"), q, spec_.n_embd);
    if (spec_.architecture == "qwen2") {
      Vector(name("attn_q.bias"), q, 0.0f);
      Vector(name("attn_k.bias"), kv, 0.0f);
      Vector(name("attn_v.bias"), kv, 0.0f);
    }
    if (spec_.architecture == "qwen3") {
      Vector(name("attn_q_norm.weight"), spec_.head_dim, 1.0f);
      Vector(name("attn_k_norm.weight"), spec_.head_dim, 1.0f);
    }
    Vector(name("ffn_norm.weight"), spec_.n_embd, 1.0f);
    Matrix(name("ffn_gate.weight"), spec_.n_embd, spec_.n_ff);
    Matrix(name("ffn_up.weight"), spec_.n_embd, spec_.n_ff);
    Matrix(name("ffn_down.weight"), spec_.n_ff, spec_.n_embd);
  }

  void Matrix(const std::string& name, int64_t k, int64_t rows) {
    const int64_t dims[] = {k, rows};
    model_.builder.AddTensor(name, spec_.type, dims);
    model_.data.push_back(RandomMatrix(spec_.type, k, rows, &random_));
  }

  void Vector(const std::string& name, int64_t n, float middle) {
    const int64_t dims[] = {n};
    model_.builder.AddTensor(name, Type::kF32, dims);
    std::vector<std::byte> bytes(static_cast<size_t>(n) * 4);
    for (int64_t i = 0; i < n; ++i) {
      const float x = middle + 0.3f * random_.Uniform();
      std::memcpy(bytes.data() + i * 4, &x, 4);
    }
    model_.data.push_back(std::move(bytes));
  }

  // Keeps short waves and makes long ones eight times longer, as Llama 3.1 does.
  void RopeFactors() {
    const int64_t pairs = spec_.head_dim / 2;
    const int64_t dims[] = {pairs};
    model_.builder.AddTensor("rope_freqs.weight", Type::kF32, dims);
    std::vector<std::byte> bytes(static_cast<size_t>(pairs) * 4);
    for (int64_t i = 0; i < pairs; ++i) {
      const float factor = i < pairs / 2 ? 1.0f : i == pairs / 2 ? 2.5f : 8.0f;
      std::memcpy(bytes.data() + i * 4, &factor, 4);
    }
    model_.data.push_back(std::move(bytes));
  }

  const TinyModelSpec spec_;
  Random random_;
  TinyModel model_;
};

}  // namespace

int64_t TinyVocabularySize() { return 256 + static_cast<int64_t>(std::size(kMerges)) + 2; }

absl::StatusOr<TinyModelSpec> TinyModelByName(const std::string& name) {
  TinyModelSpec spec;
  if (name == "llama") return spec;
  if (name == "llama3") {
    spec.rope_factors = true;
    spec.type = Type::kF16;
    return spec;
  }
  if (name == "llama-linear") {
    spec.rope_scale = 4;
    spec.tied = true;
    return spec;
  }
  if (name == "llama-odd") {
    spec.n_heads = 5;
    spec.n_kv_heads = 1;
    spec.head_dim = 24;
    spec.n_ff = 224;
    return spec;
  }
  if (name == "llama-q8") {
    spec.type = Type::kQ8_0;
    return spec;
  }
  if (name == "qwen2") {
    spec.architecture = "qwen2";
    return spec;
  }
  if (name == "qwen3" || name == "qwen3-tied") {
    spec.architecture = "qwen3";
    spec.head_dim = 32;
    spec.tied = name == "qwen3-tied";
    return spec;
  }
  return absl::NotFoundError(absl::StrCat("there is no tiny model '", name, "'"));
}

TinyModel MakeTinyModel(const TinyModelSpec& spec) { return Maker(spec).Make(); }

std::vector<std::byte> TinyModel::ToBytes() const {
  std::vector<absl::Span<const std::byte>> spans(data.begin(), data.end());
  auto bytes = gguf::ToBytes(builder, spans);
  return bytes.ok() ? *std::move(bytes) : std::vector<std::byte>();
}

}  // namespace trine
