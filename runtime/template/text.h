// UTF-8 text that knows which of its bytes came from outside the template: from a message, a tool,
// a variable. The mark stays with the bytes through whatever the template does to them, so that
// "<|im_end|>" typed by a user can be told from the template's own.
#ifndef TRINE_RUNTIME_TEMPLATE_TEXT_H_
#define TRINE_RUNTIME_TEMPLATE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trine::jinja {

class Text {
 public:
  struct Span {
    size_t begin = 0;
    size_t end = 0;
    bool operator==(const Span&) const = default;
  };

  Text() = default;
  explicit Text(std::string bytes, bool foreign = false);

  void Append(std::string_view bytes, bool foreign);
  void Append(const Text& other) { Append(other, 0, other.size()); }
  // Bytes [begin, end) of another text, which may be this one's copy but not this one.
  void Append(const Text& other, size_t begin, size_t end);

  Text Slice(size_t begin, size_t end) const;
  bool ForeignAt(size_t byte) const;

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // In order, apart from one another.
  const std::vector<Span>& foreign() const { return foreign_; }
  bool has_foreign() const { return !foreign_.empty(); }
  // What it occupies, about.
  size_t memory() const { return bytes_.size() + foreign_.size() * sizeof(Span); }

 private:
  void Mark(size_t begin, size_t end);

  std::string bytes_;
  std::vector<Span> foreign_;
};

}  // namespace trine::jinja

#endif  // TRINE_RUNTIME_TEMPLATE_TEXT_H_
