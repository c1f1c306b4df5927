// StopMatcher: finds the first stop string in a text that arrives in pieces, and holds back text
// that may be the beginning of one.
//
// The stop string that is complete first ends the text. If several end at the same byte, the
// longest counts. So the outcome depends on the text alone, not on how it was cut into pieces, and
// no token is generated beyond the first complete stop string. Compares bytes, so a piece may end
// inside a UTF-8 character.
//
// A copyable value, one per sequence; one thread at a time.

#pragma once

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

  // Fails with INVALID_ARGUMENT if a stop string is empty.
  static absl::StatusOr<StopMatcher> Create(std::vector<std::string> stops);

  // Takes the next piece and returns the text that can be shown: it can't be part of a stop string.
  // Returns no more text after a stop string was found. The result is valid until the next call.
  std::string_view Push(std::string_view text);

  // Returns the text that was held back. Call it when generation has ended without a stop string.
  // Ends the text: call Reset before the next Push.
  std::string_view Flush();

  // Starts a new text.
  void Reset();

  bool stopped() const { return stop_index_ >= 0; }
  // The index of the stop string that ended the text; -1: none.
  int32_t stop_index() const { return stop_index_; }
  // The number of bytes held back.
  size_t held_bytes() const { return text_.size() - shown_bytes_; }

 private:
  // Extends every partial match by one byte. Returns whether a stop string is complete.
  bool Advance(char byte);

  std::vector<std::string> stops_;
  // border_[s][i] is the length of the longest proper prefix of stops_[s] that is also a suffix of
  // bytes 0 to i of stops_[s] (the failure function of Knuth, Morris and Pratt).
  std::vector<std::vector<uint32_t>> border_;
  std::vector<uint32_t> matched_;  // [s]: how many first bytes of stops_[s] the text ends with
  std::string text_;               // the text shown by the last call, then the text held back
  size_t shown_bytes_ = 0;
  int32_t stop_index_ = -1;
};

}  // namespace trine
