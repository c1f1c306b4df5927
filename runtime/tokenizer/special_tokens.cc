#include "runtime/tokenizer/special_tokens.h"

#include <iterator>
#include <numeric>
#include <utility>

namespace trine {
namespace {

// Markers that do not occur in ordinary text.
constexpr std::string_view kEndMarkers[] = {
    "<|eot_id|>",      "<|im_end|>", "<|end|>",  "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>", "<|eom_id|>", "<|call|>", "<|return|>",    "<｜end▁of▁sentence｜>",
};
// Markers that end a generation only if the file says that they are special.
constexpr std::string_view kSpecialEndMarkers[] = {
    "<EOT>",        "_<EOT>",
    "▁<EOT>",       "[EOT]",
    "[EOS]",        "<eos>",
    "</s>",         "<|fim_pad|>",
    "<fim-pad>",    "<fim_pad>",
    "<PAD>",        "[PAD]",
    "<|fim_repo|>", "<|repo_name|>",
    "<reponame>",   "<fim-repo>",
    "<REPO>",       "<|file_sep|>",
    "[e~[",         "<|flush|>",
    "<|calls|>",    "<end_of_utterance>",
};
// Markers of the end of a turn; the first that exists counts.
constexpr std::string_view kTurnEnds[] = {
    "<|eot_id|>",         "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>",    "<EOT>",      "_<EOT>",  "[EOT]",         "<｜end▁of▁sentence｜>",
    "<end_of_utterance>",
};
constexpr std::string_view kMessageEnds[] = {"<|eom_id|>"};

bool IsSpecial(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUserDefined;
}

template <size_t kCount>
int32_t FirstControl(const Vocabulary& vocabulary, const std::string_view (&texts)[kCount]) {
  for (const std::string_view text : texts) {
    const int32_t id = vocabulary.Find(text);
    if (id != kNoToken && vocabulary.Type(id) == TokenType::kControl) return id;
  }
  return kNoToken;
}

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Replaces every occurrence of `text` by the token, in the fragments that are still text.
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

std::vector<TokenType> ResolveTypes(const TokenizerData& data) {
  std::vector<TokenType> types = data.types;
  if (types.empty()) {
    types.assign(data.tokens.size(), TokenType::kNormal);
    if (data.model == TokenizerModel::kSentencePiece) {
      for (size_t id = 0; id < types.size(); ++id) {
        if (ParseByteToken(data.tokens[id]) >= 0) types[id] = TokenType::kByte;
      }
    }
    for (const int32_t id : {data.bos, data.eos, data.eot, data.eom, data.pad, data.sep}) {
      if (id != kNoToken) types[id] = TokenType::kControl;
    }
    if (data.unk != kNoToken) types[data.unk] = TokenType::kUnknown;
  }
  for (size_t id = 0; id < types.size(); ++id) {
    if (std::find(std::begin(kEndMarkers), std::end(kEndMarkers), data.tokens[id]) !=
        std::end(kEndMarkers)) {
      types[id] = TokenType::kControl;
    }
  }
  return types;
}

EndTokens FindEndTokens(const TokenizerData& data, const Vocabulary& vocabulary) {
  EndTokens end;
  end.eot = data.eot != kNoToken ? data.eot : FirstControl(vocabulary, kTurnEnds);
  end.eom = data.eom != kNoToken ? data.eom : FirstControl(vocabulary, kMessageEnds);
  for (const int32_t id : {data.eos, end.eot, end.eom}) {
    if (id != kNoToken) end.all.push_back(id);
  }
  for (const std::string_view text : kEndMarkers) {
    const int32_t id = vocabulary.Find(text);
    if (id != kNoToken) end.all.push_back(id);
  }
  for (const std::string_view text : kSpecialEndMarkers) {
    const int32_t id = vocabulary.Find(text);
    if (id != kNoToken && IsSpecial(vocabulary.Type(id))) end.all.push_back(id);
  }
  // If turns end with <|return|> or <|call|>, <|end|> only separates the messages of a turn.
  if (vocabulary.Find("<|return|>") != kNoToken && vocabulary.Find("<|call|>") != kNoToken) {
    const int32_t part = vocabulary.Find("<|end|>");
    end.all.erase(std::remove(end.all.begin(), end.all.end(), part), end.all.end());
  }
  std::sort(end.all.begin(), end.all.end());
  end.all.erase(std::unique(end.all.begin(), end.all.end()), end.all.end());
  return end;
}

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

// Returns the entries that occur in the text, longest first. Walks over the text once.
std::vector<const SpecialSplitter::Entry*> SpecialSplitter::FindPresent(
    std::string_view text) const {
  std::vector<bool> present(entries_.size());
  std::vector<const Entry*> found;
  for (size_t at = 0; at < text.size(); ++at) {
    const uint8_t first = static_cast<uint8_t>(text[at]);
    FindAtFront(
        entries_.begin() + begin_[first], entries_.begin() + begin_[first + 1],
        [](const Entry& entry) { return entry.text; }, text.substr(at), 1,
        [&](auto entry) {
          const auto index = static_cast<size_t>(entry - entries_.begin());
          if (!present[index]) found.push_back(&*entry);
          present[index] = true;
        });
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
