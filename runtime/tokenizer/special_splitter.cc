#include "runtime/tokenizer/special_splitter.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace trine {
namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Cuts every place where `text` stands in the fragments that are still text.
void CutOut(std::string_view text, int32_t id, bool strips_right,
            std::vector<Fragment>* fragments) {
  std::vector<Fragment> out;
  out.reserve(fragments->size() + 2);
  for (const Fragment& fragment : *fragments) {
    std::string_view rest = fragment.text;
    size_t at = fragment.token == kNoToken ? rest.find(text) : rest.npos;
    if (at == rest.npos) {
      out.push_back(fragment);
      continue;
    }
    for (; at != rest.npos; at = rest.find(text)) {
      if (at > 0) out.push_back({rest.substr(0, at), kNoToken});
      out.push_back({{}, id});
      rest.remove_prefix(at + text.size());
      while (strips_right && !rest.empty() && IsSpace(rest.front())) rest.remove_prefix(1);
    }
    if (!rest.empty()) out.push_back({rest, kNoToken});
  }
  *fragments = std::move(out);
}

}  // namespace

SpecialSplitter::SpecialSplitter(const Vocabulary& vocabulary, absl::Span<const Special> specials) {
  for (const Special& special : specials) {
    const std::string_view text = vocabulary.Text(special.id);
    if (!text.empty()) entries_.push_back({text, special.id, special.strips_right, 0});
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.text, a.id) < std::tie(b.text, b.id);
  });
  const auto same_text = [](const Entry& a, const Entry& b) { return a.text == b.text; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same_text), entries_.end());

  std::vector<uint32_t> by_length(entries_.size());
  std::iota(by_length.begin(), by_length.end(), 0u);
  std::sort(by_length.begin(), by_length.end(), [this](uint32_t a, uint32_t b) {
    const size_t length_a = entries_[a].text.size(), length_b = entries_[b].text.size();
    return length_a != length_b ? length_a > length_b : entries_[a].id < entries_[b].id;
  });
  for (uint32_t i = 0; i < by_length.size(); ++i) entries_[by_length[i]].order = i;

  for (const Entry& entry : entries_) ++begin_[static_cast<uint8_t>(entry.text[0]) + 1];
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
}

// The entries that stand somewhere in the text, longest first. One walk over the text: at each
// place the sorted entries are narrowed down byte by byte, as in a trie.
std::vector<const SpecialSplitter::Entry*> SpecialSplitter::FindPresent(
    std::string_view text) const {
  std::vector<bool> present(entries_.size());
  std::vector<const Entry*> found;
  for (size_t at = 0; at < text.size(); ++at) {
    const uint8_t first = static_cast<uint8_t>(text[at]);
    auto begin = entries_.begin() + begin_[first], end = entries_.begin() + begin_[first + 1];
    for (size_t depth = 1; begin != end; ++depth) {
      if (begin->text.size() == depth) {
        const size_t index = begin - entries_.begin();
        if (!present[index]) found.push_back(&*begin);
        present[index] = true;
        ++begin;
      }
      if (at + depth == text.size()) break;
      const uint8_t next = static_cast<uint8_t>(text[at + depth]);
      begin = std::partition_point(begin, end, [depth, next](const Entry& entry) {
        return static_cast<uint8_t>(entry.text[depth]) < next;
      });
      end = std::partition_point(begin, end, [depth, next](const Entry& entry) {
        return static_cast<uint8_t>(entry.text[depth]) == next;
      });
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Entry* a, const Entry* b) { return a->order < b->order; });
  return found;
}

std::vector<Fragment> SpecialSplitter::Split(std::string_view text) const {
  std::vector<Fragment> fragments;
  if (text.empty()) return fragments;
  fragments.push_back({text, kNoToken});
  if (entries_.empty()) return fragments;
  for (const Entry* entry : FindPresent(text)) {
    CutOut(entry->text, entry->id, entry->strips_right, &fragments);
  }
  return fragments;
}

}  // namespace trine
