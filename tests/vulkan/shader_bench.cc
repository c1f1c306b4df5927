// shader-bench: measures the ops beside the matrix products on the first device, in the shapes of a
// 1B model (2048 wide, 32 heads of 64, 8 kv heads), with the device's own timestamps.
#include <cstdio>
#include <numeric>
#include <string>

#include "kernels/vulkan/runs/attention.h"
#include "kernels/vulkan/runs/products.h"
#include "kernels/vulkan/runs/simple.h"
#include "tests/vulkan/shader_runner.h"

namespace trine::vulkan {
namespace {

using reference::Tensor;
using reference::Type;

class Bench {
 public:
  explicit Bench(ShaderRunner* runner) : runner_(runner) {}

  void Print(const std::string& what, const std::vector<KernelRun>& runs,
             const std::vector<const Tensor*>& operands, uint64_t scratch_bytes = 0) {
    std::vector<Bytes> bytes;
    for (const Tensor* tensor : operands) bytes.push_back(OperandOf(*tensor));
    std::vector<Bytes*> pointers;
    for (Bytes& operand : bytes) pointers.push_back(&operand);
    const std::vector<double> times = runner_->Times(runs, pointers, scratch_bytes);
    const double total = std::accumulate(times.begin(), times.end(), 0.0);
    std::printf("%-44s %10.1f us\n", what.c_str(), total / 1000);
  }

  void Rows(int64_t tokens) {
    const std::string at = " of " + std::to_string(tokens) + " tokens";
    const Tensor x(Type::kF32, {2048, tokens}), w(Type::kF32, {2048}),
        y(Type::kF32, {2048, tokens});
    Norm norm;
    norm.x = ViewOf(x);
    norm.weight = ViewOf(w);
    norm.eps = 1e-5f;
    norm.y = ViewOf(y);
    const std::vector<const Tensor*> operands = {&x, &w, &x, &x, &x, &y};
    Print("rms_norm" + at, {NormRun(norm, 512)}, operands);
    norm.addend = norm.sum = norm.x;
    norm.quantized = 0;
    norm.writes_y = false;
    Print("add, rms_norm, quantize" + at, {NormRun(norm, 512)}, operands,
          QuantizedBytes(2048, tokens));
    Print("add" + at, {AddRun(ViewOf(x), ViewOf(x), ViewOf(y), 256)}, {&x, &x, &y});
    const Tensor wide(Type::kF32, {8192, tokens}), out(Type::kF32, {8192, tokens});
    Print("glu" + at, {GluRun(ViewOf(wide), ViewOf(wide), {}, ViewOf(out), 256)},
          {&wide, &wide, &out});
    const Tensor q(Type::kF32, {64, 32, tokens}), table(Type::kF32, {64, tokens});
    Print("rope" + at,
          {RopeRun(ViewOf(q), ViewOf(table), reference::RopeMode::kHalves, ViewOf(q), 256)},
          {&q, &table, &q});
  }

  void Attention(Type type, int64_t tokens, int64_t length, const AttentionCut& cut) {
    const int64_t blocks = (length + 255) / 256;
    const Tensor q(Type::kF32, {64, 32, tokens}), y(Type::kF32, {64, 32, tokens});
    const Tensor cache(type, {64, 256, 8, blocks}), table(Type::kI32, {blocks, 1});
    Tensor offsets(Type::kI32, {2}), lengths(Type::kI32, {1});
    std::iota(reference::I32Row(table, 0), reference::I32Row(table, 0) + blocks, 0);
    offsets.Set({0, static_cast<int32_t>(tokens)});
    lengths.Set({static_cast<int32_t>(length)});
    const AttentionViews views = {ViewOf(q),       ViewOf(cache),   ViewOf(cache), ViewOf(table),
                                  ViewOf(offsets), ViewOf(lengths), nullptr,       ViewOf(y)};
    const std::string what = std::string("attention ") + quant::Traits(type).name + ", " +
                             std::to_string(tokens) + " at " + std::to_string(length) + ", " +
                             std::to_string(cut.workgroup) + "x" + std::to_string(cut.rows) +
                             (cut.split ? " split" : "");
    Print(what, AttentionRuns(views, {}, length, cut),
          {&q, &cache, &cache, &table, &offsets, &lengths, &q, &y},
          AttentionScratchBytes(views, length, cut));
  }

 private:
  ShaderRunner* runner_;
};

int Main() {
  std::string why;
  ShaderRunner* runner = ShaderRunner::Get(&why);
  if (runner == nullptr) {
    std::fprintf(stderr, "shader-bench: %s\n", why.c_str());
    return 1;
  }
  Bench bench(runner);
  for (const int64_t tokens : {1, 128}) bench.Rows(tokens);
  for (const Type type : {Type::kF16, Type::kQ8_KV}) {
    for (const int64_t length : {200, 1024, 4096}) {
      for (const AttentionCut& cut : {AttentionCut{128, 4, false}, AttentionCut{256, 4, false},
                                      AttentionCut{128, 4, true}, AttentionCut{256, 4, true}}) {
        bench.Attention(type, 1, length, cut);
      }
    }
    bench.Attention(type, 128, 1024, {128, 4, false});
    bench.Attention(type, 128, 1024, {128, 8, false});
  }
  return 0;
}

}  // namespace
}  // namespace trine::vulkan

int main() { return trine::vulkan::Main(); }
