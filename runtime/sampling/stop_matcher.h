// StopMatcher: finds the first stop string in a text that arrives in pieces, and holds back what
// may be the beginning of one.
//
// The stop string that is complete first ends the text; of several that end at the same byte, the
// longest. So the outcome depends on the text alone, not on how it was cut into pieces, and no
// token is generated beyond the first complete stop string. Bytes are compared: a piece may end
// inside a UTF-8 character.
//
// A copyable value, one per sequence; one thread at a time.

#ifndef TRINE_RUNTIME_SAMPLING_STOP_MATCHER_H_
#define TRINE_RUNTIME_SAMPLING_STOP_MATCHER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace trine {

class StopMatcher {
 public:
  StopMatcher() = default;  // no stop strings: text passes through

  // INVALID_ARGUMENT for an empty stop string.
  static absl::StatusOr<StopMatcher> Create(std::vector<std::string> stops);

  // Takes the next piece and returns what may be shown now: it is neither part of a stop string nor
  // the beginning of one. Valid until the next call. Empty once stopped.
  std::string_view Push(std::string_view text);

  // Generation ended for another reason: what was held back. Nothing more may be pushed.
  std::string_view Flush();

  // Back to the beginning of a text.
  void Reset();

  bool stopped() const { return stop_index_ >= 0; }
  // The stop string that ended the text, by its place in the list; -1: none.
  int32_t stop_index() const { return stop_index_; }
  // What is held back at the moment.
  size_t held_bytes() const { return text_.size() - shown_bytes_; }
  const std::vector<std::string>& stops() const { return stops_; }

 private:
  // Extends every partial match by one byte. Returns whether a stop string is complete.
  bool Advance(char byte);

  std::vector<std::string> stops_;
  // border_[s][i]: the longest proper prefix of stops_[s] that ends at its byte i.
  std::vector<std::vector<uint32_t>> border_;
  std::vector<uint32_t> matched_;  // bytes of stops_[s] that the text ends with
  std::string text_;               // shown by the last call, then held back
  size_t shown_bytes_ = 0;
  int32_t stop_index_ = -1;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_SAMPLING_STOP_MATCHER_H_
