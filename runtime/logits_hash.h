// The exactness oracle: a hash over the logits rows of every position of a sequence, in order, each
// once whatever was computed again. Two runs that agree in it agree in every bit of every row.
#ifndef TRINE_RUNTIME_LOGITS_HASH_H_
#define TRINE_RUNTIME_LOGITS_HASH_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trine {

class LogitsHash {
 public:
  // Rows come by increasing position from 0 on; a position that has been added is passed over.
  void Add(int64_t position, std::span<const float> row);
  // Forgets the rows of positions from n on.
  void Truncate(int64_t n);

  int64_t rows() const { return static_cast<int64_t>(after_row_.size()); }
  // "1-" and 16 hexadecimal digits: the numerics version, then the hash.
  std::string Text() const;

 private:
  uint64_t value() const;
  std::vector<uint64_t> after_row_;  // the hash of all rows up to each one
};

}  // namespace trine

#endif  // TRINE_RUNTIME_LOGITS_HASH_H_
