#include "tools/cli/bench_result.h"

#include <cmath>

namespace trine {

uint64_t BenchOps::OpNs() const {
  uint64_t sum = 0;
  for (const OpTime& op : ops) sum += op.ns;
  return sum;
}

std::vector<double> BenchResult::TokensPerSecond() const {
  std::vector<double> speeds;
  for (const uint64_t ns : samples_ns) {
    speeds.push_back(1e9 * static_cast<double>(test.Tokens()) / static_cast<double>(ns));
  }
  return speeds;
}

double BenchResult::ReadBytesPerSecond() const {
  return reads ? Mean(TokensPerSecond()) * reads->Bytes() : 0;
}

double BenchResult::ShareOfMachine() const {
  if (!reads || reads->machine_bytes_per_second == 0) return 0;
  return ReadBytesPerSecond() / reads->machine_bytes_per_second;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double Deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace trine
