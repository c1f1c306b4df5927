// Tests the products of every library that the plugin was built with: how near they are to the true
// product, that the cut into tiles leaves nothing out, and that they start no threads.
//
//   cmake --build build --target product_test && OMP_NUM_THREADS=4 build/product_test
#include "product.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace sdk = trine::sdk;
using blas::Library;

namespace {

int failures = 0;

void Check(bool good, const std::string& what) {
  if (good) return;
  std::printf("FAILED: %s\n", what.c_str());
  ++failures;
}

struct Sizes {
  int64_t rows, tokens, columns;

  std::string Text() const {
    return std::to_string(rows) + " rows, " + std::to_string(tokens) + " tokens, " +
           std::to_string(columns) + " columns";
  }
};

// Returns numbers of both signs from 2^-4 to 1, always the same.
std::vector<float> Numbers(int64_t count, uint32_t seed) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) {
    seed = seed * 1664525u + 1013904223u;
    const uint32_t exponent = 127u - 1u - (seed >> 9 & 3u);
    number = std::bit_cast<float>((seed & 0x80000000u) | exponent << 23 | (seed >> 8 & 0x7fffffu));
  }
  return numbers;
}

template <class T>
sdk::View ViewOf(std::vector<T>* values, uint32_t dtype, int64_t columns, int64_t rows) {
  const auto row_bytes = static_cast<int64_t>(sizeof(T)) * columns;
  return {reinterpret_cast<std::byte*>(values->data()),
          dtype,
          {columns, rows, 1, 1},
          {sizeof(T), row_bytes, row_bytes * rows, row_bytes * rows}};
}

// Multiplies and returns the largest error, as a part of the sum of the terms' magnitudes.
double LargestError(const Library& library, const Sizes& sizes, bool halved) {
  const auto [rows, tokens, columns] = sizes;
  std::vector<float> w = Numbers(rows * columns, 1), x = Numbers(tokens * columns, 2);
  std::vector<float> bias = Numbers(rows, 3), y(static_cast<size_t>(rows * tokens), NAN);
  std::vector<uint16_t> bf16, halves(blas::HalvesBytes(columns, tokens) / sizeof(uint16_t));
  for (float& weight : w) {
    bf16.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(weight) >> 16));
    weight = std::bit_cast<float>(uint32_t{bf16.back()} << 16);
  }
  std::vector<float> room(blas::RoomBytes(TRINE_DTYPE_BF16, 32) / sizeof(float));
  const blas::Product product{ViewOf(&bf16, TRINE_DTYPE_BF16, columns, rows),
                              ViewOf(&x, TRINE_DTYPE_F32, columns, tokens),
                              bias.data(),
                              ViewOf(&y, TRINE_DTYPE_F32, rows, tokens),
                              32,
                              &library,
                              halved ? halves.data() : nullptr};
  if (halved) blas::SplitTokens(product, 0, tokens);
  for (int64_t tile = 0; tile < product.Tiles(); ++tile) {
    Check(blas::MultiplyTile(product, tile, room.data()), "the library multiplies");
  }
  double largest = 0;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t r = 0; r < rows; ++r) {
      double sum = bias[static_cast<size_t>(r)], magnitudes = std::fabs(sum);
      for (int64_t k = 0; k < columns; ++k) {
        const double term = double{w[static_cast<size_t>(r * columns + k)]} *
                            double{x[static_cast<size_t>(t * columns + k)]};
        sum += term;
        magnitudes += std::fabs(term);
      }
      const double error = std::fabs(sum - double{y[static_cast<size_t>(t * rows + r)]});
      largest = std::max(largest, std::isnan(error) ? INFINITY : error / magnitudes);
    }
  }
  return largest;
}

int Threads() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != "Threads:") continue;
  int threads = 0;
  status >> threads;
  return threads;
}

void TestLibrary(const Library& library) {
  int threads = Threads();
  // The second has a tile of one row, the third has parts of tiles.
  for (const Sizes& sizes : {Sizes{96, 40, 64}, Sizes{33, 1, 45}, Sizes{80, 5, 2500}}) {
    const double floats = LargestError(library, sizes, false);
    Check(floats < 0x1p-19, "floats, " + sizes.Text() + ": the error " + std::to_string(floats));
    if (!library.HasBf16()) continue;
    // Activations of one bf16 each would be wrong by about 2^-12 here.
    const double halves = LargestError(library, sizes, true);
    Check(halves < 0x1p-16, "bf16, " + sizes.Text() + ": the error " + std::to_string(halves));
  }
  for (const bool halved : {false, true}) {
    if (halved && !library.HasBf16()) continue;
    LargestError(library, {512, 256, 512}, halved);  // enough work for several threads
    Check(Threads() == threads,
          std::string(halved ? "bf16" : "floats") + ": the library has started threads: " +
              std::to_string(Threads()) + ", there were " + std::to_string(threads));
    threads = Threads();
  }
  std::printf("%s%s: tested\n", library.Version().c_str(), library.HasBf16() ? ", bf16" : "");
}

}  // namespace

int main() {
  for (const Library* library : {blas::Cblas(), blas::OneDnn()}) {
    if (library != nullptr) TestLibrary(*library);
  }
  return failures == 0 ? 0 : 1;
}
