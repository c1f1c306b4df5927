// Server-sent events, collected until somebody sends them.
#ifndef TRINE_TOOLS_SERVER_OPENAI_FRAMES_H_
#define TRINE_TOOLS_SERVER_OPENAI_FRAMES_H_

#include <string>
#include <string_view>
#include <utility>

namespace trine::server {

class Frames {
 public:
  // `json` is one line.
  void Data(std::string_view json) { Append("data: ", json, "\n\n"); }
  void Event(std::string_view name, std::string_view json) {
    Append("event: ", name, "\n");
    Data(json);
  }
  void Done() { Data("[DONE]"); }

  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  std::string Take() { return std::exchange(text_, {}); }

 private:
  void Append(std::string_view head, std::string_view body, std::string_view tail) {
    text_.append(head).append(body).append(tail);
  }

  std::string text_;
};

}  // namespace trine::server

#endif  // TRINE_TOOLS_SERVER_OPENAI_FRAMES_H_
