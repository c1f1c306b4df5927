// The exactness oracle: a hash over the logits rows of every position of a sequence, in order, each
// once whatever was computed again. Two runs that agree in it agree in every bit of every row.
#ifndef TRINE_RUNTIME_LOGITS_HASH_H_
#define TRINE_RUNTIME_LOGITS_HASH_H_

#include <cstdint>
#include <span>
#include <string>

namespace trine {

class LogitsHash {
 public:
  // Rows come by increasing position from 0 on; a position that has been added is passed over.
  void Add(int64_t position, std::span<const float> row);

  int64_t rows() const { return rows_; }
  // "1-" and 16 hexadecimal digits: the numerics version, then the hash.
  std::string Text() const;

 private:
  int64_t rows_ = 0;
  uint64_t value_ = 0xcbf29ce484222325ull;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_LOGITS_HASH_H_
