// Tensors for the comparisons of products: with gaps that nothing may write to, and packed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cpu/levels/kernel_table.h"
#include "kernels/quant/test_util.h"
#include "kernels/reference/ops.h"

namespace trine::cpu_kernels {

// A tensor at the worst address and stride that its type allows; its gaps are filled with a
// pattern.
class GappedTensor {
 public:
  GappedTensor(quant::Type type, std::vector<int64_t> dims);
  GappedTensor(const GappedTensor&) = delete;
  GappedTensor& operator=(const GappedTensor&) = delete;

  const View& view() const { return view_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  float* Row(int64_t r) const { return reference::F32Row(view_, r); }

  void FillRows(quant::Fill fill, quant::Random* random);
  void FillWeights(bool any_scale, quant::Random* random);
  // Sets all of a row but the scales to one byte: a format's largest and smallest integers.
  void FillExtreme(quant::Random* random);

 private:
  View view_;
  std::vector<std::byte> bytes_;
};

// A packed matrix, or several; empty if the level does not pack the type.
class PackedTensor {
 public:
  PackedTensor(const KernelTable& table, const View& plain);
  // Returns null if the tensor is empty.
  const View* view() const { return bytes_.empty() ? nullptr : &view_; }

 private:
  View view_;
  std::vector<std::byte> bytes_;
};

// Returns memory for quantised activations, filled with bytes other than zeros.
std::vector<ActivationChunk> MakeChunks(const View& x);

// Describes the first place where two results differ, by row and feature.
std::string Difference(const GappedTensor& want, const GappedTensor& got);

}  // namespace trine::cpu_kernels
