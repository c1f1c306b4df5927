// What one rendering may cost. A template comes with the model file, from anybody: whatever it
// says, it ends, and in the memory it was given.
#ifndef TRINE_RUNTIME_TEMPLATE_BUDGET_H_
#define TRINE_RUNTIME_TEMPLATE_BUDGET_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/template/value.h"
#include "runtime/template/words.h"

namespace trine::jinja {

struct Limits {
  int64_t steps = 5'000'000;   // expressions and statements evaluated, and bytes gone over
  int64_t memory = 256 << 20;  // bytes made, whether or not they are kept
  int64_t output = 64 << 20;   // bytes of the result
  int depth = 400;             // expressions in statements in macros in ...
};

class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}

  absl::Status Step() {
    if (++steps_ <= limits_.steps) return absl::OkStatus();
    return TooMuch("the template takes more than ", limits_.steps, " steps");
  }
  // Going over `n` bytes or items.
  absl::Status Work(int64_t n) {
    steps_ += n / kBytesPerStep;
    return Step();
  }
  absl::Status Allocate(int64_t bytes) {
    memory_ += bytes;
    if (bytes <= limits_.memory && memory_ <= limits_.memory) return absl::OkStatus();
    return TooMuch("the template makes more than ", limits_.memory, " bytes");
  }
  // A text that is written grew to `size`, by `added`.
  absl::Status Output(size_t size, size_t added) {
    if (static_cast<int64_t>(size) > limits_.output) {
      return TooMuch("the template writes more than ", limits_.output, " bytes");
    }
    if (absl::Status s = Allocate(static_cast<int64_t>(added)); !s.ok()) return s;
    return Work(static_cast<int64_t>(added));
  }

  // Values that hold something, paid for.
  absl::StatusOr<Value> String(Text text) {
    if (absl::Status s = Allocate(kValueBytes + static_cast<int64_t>(text.memory())); !s.ok()) {
      return s;
    }
    return Value::String(std::move(text));
  }
  absl::StatusOr<Value> OfList(std::vector<Value> items) {
    const Value list = Value::OfList(std::move(items));
    if (absl::Status s = Hold(list); !s.ok()) return s;
    return list;
  }
  absl::StatusOr<Value> OfDict(Dict dict) {
    const Value value = Value::OfDict(std::move(dict));
    if (absl::Status s = Hold(value); !s.ok()) return s;
    return value;
  }

  const Limits& limits() const { return limits_; }

 private:
  static constexpr int64_t kBytesPerStep = 32;
  static constexpr int64_t kValueBytes = 64;

  absl::Status Hold(const Value& value) {
    if (value.height() > kMaxHeight) {
      return TooMuch("the template nests lists more than ", kMaxHeight, " deep");
    }
    return Allocate(kValueBytes * (1 + value.size()));
  }

  Limits limits_;
  int64_t steps_ = 0;
  int64_t memory_ = 0;
};

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_BUDGET_H_
