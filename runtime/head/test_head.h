// Makes a head, and examples with made-up rows, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/head/head.h"
#include "runtime/head/head_data.h"
#include "trine/backend.h"

namespace trine {

// Gives numbers from -1 to 1 that look random and are the same everywhere.
class Noise {
 public:
  explicit Noise(uint64_t seed) : state_(seed * 2 + 1) {}
  double Next() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<double>(state_ >> 40) / static_cast<double>(1 << 23) - 1.0;
  }

 private:
  uint64_t state_;
};

inline ModelIdentity TestIdentity(int64_t width) { return {"llama", width, 1000, 0x1234abcdull}; }

inline Head TestHead() {
  Head head;
  head.numerics = TRINE_NUMERICS_VERSION;
  head.model = TestIdentity(3);
  head.labels = {"A", "B"};
  head.training = {.examples = 10,
                   .correct = 9,
                   .held_out = 4,
                   .held_out_correct = 3,
                   .l2 = 0.1,
                   .hold_out = 0.2,
                   .seed = ~uint64_t{0},
                   .iterations = 5,
                   .loss = 0.25};
  head.linear.mean = {0.1, -2.5, 1e-20};
  head.linear.scale = {1.0, 1.0 / 3.0, 7e5};
  head.linear.weights = {0.3, -0.0, 123456.789};
  head.linear.bias = -0.7;
  return head;
}

// Makes `n` groups of two examples, one with each label. Rows are noise, but `signal` is subtracted
// from a row's first value for label A and added to it for label B.
inline HeadData TestExamples(int n, size_t width, double signal, uint64_t seed = 1) {
  HeadData data;
  Noise noise(seed);
  for (int i = 0; i < 2 * n; ++i) {
    Example example;
    example.line = i + 1;
    example.group = "g" + std::to_string(i / 2);
    example.texts = {"text " + std::to_string(i)};
    example.label = std::string(1, i % 2 == 0 ? 'A' : 'B');
    std::vector<float> row;
    for (size_t k = 0; k < width; ++k) row.push_back(static_cast<float>(noise.Next()));
    row[0] += static_cast<float>(i % 2 == 0 ? -signal : signal);
    example.rows = {std::move(row)};
    data.examples.push_back(std::move(example));
  }
  return data;
}

}  // namespace trine
