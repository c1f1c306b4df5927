// Hashes the rows of logits of all positions of a sequence, in order. A row that is computed again
// counts once. Two runs with the same hash agree in every bit of every row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trine {

class LogitsHash {
 public:
  // `fast`: devices with fast numerics may compute the rows, so the hash says nothing about other
  // devices.
  explicit LogitsHash(bool fast = false) : fast_(fast) {}

  // Adds a row. Rows come by increasing position, beginning with 0. Skips a position that has been
  // added already.
  void Add(int64_t position, std::span<const float> row);
  // Keeps the rows of the first n positions.
  void Truncate(int64_t n);

  int64_t rows() const { return static_cast<int64_t>(after_row_.size()); }
  // Returns the numerics version, "-", and the hash as 16 hexadecimal digits. With fast numerics
  // "fast" is in place of the version, so the text never equals that of exact rows.
  std::string Text() const;

 private:
  uint64_t value() const;
  bool fast_;
  std::vector<uint64_t> after_row_;  // for each row, the hash of all rows up to it
};

}  // namespace trine
