#include "runtime/sampling/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "runtime/base/invalid.h"

namespace trine {
namespace {

std::vector<uint32_t> Borders(const std::string& stop) {
  std::vector<uint32_t> border(stop.size(), 0);
  uint32_t length = 0;
  for (size_t i = 1; i < stop.size(); ++i) {
    while (length > 0 && stop[i] != stop[length]) length = border[length - 1];
    if (stop[i] == stop[length]) ++length;
    border[i] = length;
  }
  return border;
}

}  // namespace

absl::StatusOr<StopMatcher> StopMatcher::Create(std::vector<std::string> stops) {
  StopMatcher matcher;
  for (size_t s = 0; s < stops.size(); ++s) {
    if (stops[s].empty()) {
      return Invalid("stop string ", s + 1, " of ", stops.size(),
                     " is empty: expected at least one character");
    }
    matcher.border_.push_back(Borders(stops[s]));
  }
  matcher.matched_.assign(stops.size(), 0);
  matcher.stops_ = std::move(stops);
  return matcher;
}

bool StopMatcher::Advance(char byte) {
  for (size_t s = 0; s < stops_.size(); ++s) {
    const std::string& stop = stops_[s];
    uint32_t& length = matched_[s];
    while (length > 0 && stop[length] != byte) length = border_[s][length - 1];
    if (stop[length] == byte) ++length;
    if (length < stop.size()) continue;
    // Names the first of equal stop strings.
    if (!stopped() || stop.size() > stops_[static_cast<size_t>(stop_index_)].size()) {
      stop_index_ = static_cast<int32_t>(s);
    }
  }
  return stopped();
}

std::string_view StopMatcher::Push(std::string_view text) {
  text_.erase(0, shown_bytes_);
  shown_bytes_ = 0;
  if (stopped()) return {};
  for (const char byte : text) {
    text_.push_back(byte);
    if (!Advance(byte)) continue;
    text_.resize(text_.size() - stops_[static_cast<size_t>(stop_index_)].size());
    shown_bytes_ = text_.size();
    return text_;
  }
  const auto longest = std::max_element(matched_.begin(), matched_.end());
  const size_t held = longest == matched_.end() ? 0 : *longest;
  shown_bytes_ = text_.size() - held;
  return std::string_view(text_).substr(0, shown_bytes_);
}

std::string_view StopMatcher::Flush() {
  text_.erase(0, shown_bytes_);
  shown_bytes_ = text_.size();
  std::fill(matched_.begin(), matched_.end(), 0);
  return text_;
}

void StopMatcher::Reset() {
  text_.clear();
  shown_bytes_ = 0;
  stop_index_ = -1;
  std::fill(matched_.begin(), matched_.end(), 0);
}

}  // namespace trine
