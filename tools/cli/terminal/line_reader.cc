#include "tools/cli/terminal/line_reader.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "runtime/tokenizer/utf8.h"

namespace trine {
namespace {

constexpr char kCtrlC = 3, kCtrlD = 4, kCtrlL = 12, kEscape = 27;

using Edit = void (LineBuffer::*)();

// The keys of each edit, as terminals send them. Escape O counts as Escape [.
struct EditKeys {
  Edit edit;
  std::string_view keys[4];
};
constexpr EditKeys kEdits[] = {
    {&LineBuffer::Home, {"\001", "\033[H", "\033[1~", "\033[7~"}},
    {&LineBuffer::End, {"\005", "\033[F", "\033[4~", "\033[8~"}},
    {&LineBuffer::Left, {"\002", "\033[D"}},
    {&LineBuffer::Right, {"\006", "\033[C"}},
    {&LineBuffer::WordLeft, {"\033b", "\033[1;5D"}},
    {&LineBuffer::WordRight, {"\033f", "\033[1;5C"}},
    {&LineBuffer::Older, {"\020", "\033[A"}},
    {&LineBuffer::Newer, {"\016", "\033[B"}},
    {&LineBuffer::Backspace, {"\010", "\177"}},
    {&LineBuffer::Delete, {"\033[3~"}},
    {&LineBuffer::DeleteWord, {"\027"}},
    {&LineBuffer::DeleteToEnd, {"\013"}},
    {&LineBuffer::DeleteToHome, {"\025"}},
};

// Returns null if the key edits nothing.
Edit EditOf(std::string_view key) {
  for (const auto& [edit, keys] : kEdits) {
    if (std::ranges::find(keys, key) != std::end(keys)) return edit;
  }
  return nullptr;
}

// While an object of this class lives, keys come one by one without echo, and Ctrl-C is a key.
class RawMode {
 public:
  RawMode() {
    if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    raw.c_iflag &= ~static_cast<tcflag_t>(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
    raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | IEXTEN | ISIG);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    set_ = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
  }
  ~RawMode() {
    if (set_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  RawMode(const RawMode&) = delete;
  RawMode& operator=(const RawMode&) = delete;

 private:
  termios before_{};
  bool set_ = false;
};

// Reads what there is, at least one byte. Returns 0 at the end of the input.
size_t ReadSome(char* bytes, size_t most) {
  while (true) {
    const ssize_t n = read(STDIN_FILENO, bytes, most);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR) return 0;
  }
}

// Returns whether more input is there already. If so, the line is not drawn yet: only the end of a
// pasted text is worth drawing.
bool InputWaits() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

int TerminalColumns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

LineReader::LineReader(int wake_file)
    : wake_file_(wake_file), terminal_(isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0) {}

LineReader::Outcome LineReader::Read(const std::string& prompt, int columns, std::string* line) {
  if (terminal_) return EditLine(prompt, columns, line);
  if (!ReadPiped(line)) return Outcome::kEnd;
  if (!line->empty() && line->back() == '\r') line->pop_back();
  return Outcome::kLine;
}

// Signals may run on another thread and then do not interrupt a read on this one, so both files are
// waited for.
bool LineReader::Wait() const {
  pollfd files[] = {{STDIN_FILENO, POLLIN, 0}, {wake_file_, POLLIN, 0}};
  while (true) {
    if (poll(files, wake_file_ >= 0 ? 2 : 1, -1) > 0) return files[1].revents == 0;
    if (errno != EINTR) return false;
  }
}

bool LineReader::ReadByte(char* byte) const { return Wait() && ReadSome(byte, 1) == 1; }

// Reads a line that need not end with a newline at the end of the input. Returns false if there is
// none.
bool LineReader::ReadPiped(std::string* line) {
  size_t end = piped_.find('\n');
  while (end == std::string::npos) {
    char bytes[4096];
    const size_t n = Wait() ? ReadSome(bytes, sizeof(bytes)) : 0;
    if (n == 0) break;
    const size_t before = piped_.size();
    piped_.append(bytes, n);
    end = piped_.find('\n', before);
  }
  if (end == std::string::npos && piped_.empty()) return false;
  *line = piped_.substr(0, end);
  piped_.erase(0, end == std::string::npos ? end : end + 1);
  return true;
}

// Reads the rest of a character that begins with `first`. Returns "" if it is not UTF-8.
std::string LineReader::ReadCharacter(char first) const {
  std::string character(1, first);
  while (NextUtf8(character).kind == Utf8Step::Kind::kIncomplete) {
    char next = 0;
    if (!ReadByte(&next)) return "";
    character += next;
  }
  return NextUtf8(character).kind == Utf8Step::Kind::kCharacter ? character : "";
}

// Reads the rest of a key that begins with Escape. Ignores modifiers that have no edit of their
// own.
LineReader::Edit LineReader::ReadEscape() const {
  char kind = 0, last = 0;
  if (!ReadByte(&kind)) return nullptr;
  if (kind != '[' && kind != 'O') return EditOf(std::string{kEscape, kind});
  std::string key = "\033[";
  while (ReadByte(&last) && last >= '0' && last <= ';') key += last;  // digits and separators
  const Edit edit = EditOf(key + last);
  return edit == nullptr && last != '~' ? EditOf(std::string("\033[") + last) : edit;
}

// Draws one row: the part of the line around the cursor. Looks only at what it shows.
void LineReader::Draw(const std::string& prompt, int columns) const {
  const int room = std::max(TerminalColumns() - columns - 1, 1);
  const std::string_view text = buffer_.text();
  size_t begin = buffer_.cursor();
  int before = 0;  // columns from `begin` to the cursor
  while (begin > 0) {
    const size_t previous = CharacterBefore(text, begin);
    const int width = DisplayWidth(text.substr(previous, begin - previous));
    if (before + width > room) break;
    before += width;
    begin = previous;
  }
  size_t end = buffer_.cursor();
  for (int shown = before; end < text.size();) {
    const size_t next = CharacterAfter(text, end);
    shown += DisplayWidth(text.substr(end, next - end));
    if (shown > room) break;
    end = next;
  }
  std::printf("\r%s%.*s\033[K\r", prompt.c_str(), static_cast<int>(end - begin),
              text.data() + begin);
  if (columns + before > 0) std::printf("\033[%dC", columns + before);
  std::fflush(stdout);
}

LineReader::Outcome LineReader::EditLine(const std::string& prompt, int columns,
                                         std::string* line) {
  const RawMode raw;
  buffer_.Clear();
  while (true) {
    if (!InputWaits()) Draw(prompt, columns);
    char key = 0;
    if (!ReadByte(&key)) return Outcome::kEnd;
    switch (key) {
      case '\r':
      case '\n':
        buffer_.End();
        Draw(prompt, columns);
        std::printf("\n");
        *line = buffer_.Take();
        return Outcome::kLine;
      case kCtrlC:
        Draw(prompt, columns);
        std::printf("^C\n");
        *line = buffer_.text();
        return Outcome::kInterrupted;
      case kCtrlD:
        if (buffer_.text().empty()) {
          std::printf("\n");
          return Outcome::kEnd;
        }
        buffer_.Delete();
        break;
      case kCtrlL:
        std::printf("\033[H\033[2J");
        break;
      case '\t':
        buffer_.Insert(" ");
        break;
      default:
        if (const Edit edit = key == kEscape ? ReadEscape() : EditOf({&key, 1}); edit != nullptr) {
          (buffer_.*edit)();
        } else if (static_cast<unsigned char>(key) >= 0x20) {
          buffer_.Insert(ReadCharacter(key));
        }
    }
  }
}

}  // namespace trine
