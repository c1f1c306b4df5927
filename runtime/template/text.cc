#include "runtime/template/text.h"

#include <algorithm>

namespace trine::jinja {
namespace {

// The first span that ends behind `byte`.
std::vector<Text::Span>::const_iterator FirstBehind(const std::vector<Text::Span>& spans,
                                                    size_t byte) {
  return std::upper_bound(spans.begin(), spans.end(), byte,
                          [](size_t at, const Text::Span& span) { return at < span.end; });
}

}  // namespace

Text::Text(std::string bytes, bool foreign) : bytes_(std::move(bytes)) {
  if (foreign) Mark(0, bytes_.size());
}

void Text::Mark(size_t begin, size_t end) {
  if (begin == end) return;
  if (!foreign_.empty() && foreign_.back().end == begin) {
    foreign_.back().end = end;
  } else {
    foreign_.push_back({begin, end});
  }
}

void Text::Append(std::string_view bytes, bool foreign) {
  const size_t begin = bytes_.size();
  bytes_.append(bytes);
  if (foreign) Mark(begin, bytes_.size());
}

void Text::Append(const Text& other, size_t begin, size_t end) {
  const size_t base = bytes_.size();
  bytes_.append(other.bytes_, begin, end - begin);
  for (auto span = FirstBehind(other.foreign_, begin);
       span != other.foreign_.end() && span->begin < end; ++span) {
    Mark(base + std::max(span->begin, begin) - begin, base + std::min(span->end, end) - begin);
  }
}

Text Text::Slice(size_t begin, size_t end) const {
  Text slice;
  slice.Append(*this, begin, end);
  return slice;
}

bool Text::ForeignAt(size_t byte) const {
  const auto span = FirstBehind(foreign_, byte);
  return span != foreign_.end() && span->begin <= byte;
}

}  // namespace trine::jinja
