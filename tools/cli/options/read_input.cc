#include "tools/cli/options/read_input.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/tokenizer/utf8.h"

namespace trine {
namespace {

constexpr size_t kMaxInputBytes = size_t{256} << 20;

}  // namespace

void AddPromptOptions(Command command, const std::string& what, PromptSource* source) {
  const auto take_text = [source](const std::string& value) {
    source->text = value;
    source->has_text = true;
    return std::string();
  };
  command.AddParsed("-p,--prompt", take_text, what).ValueName("TEXT");
  command.AddOption("-f,--file", source->file, "A file with it instead; -: standard input")
      .Excludes({"--prompt"});
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  const auto failed = [&](const char* what) {
    return absl::NotFoundError(absl::StrCat(path, ": ", what, ": ", std::strerror(errno)));
  };
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return failed("it can't be opened");
  const absl::Cleanup close = [&] {
    if (file != stdin) std::fclose(file);
  };
  std::string text;
  char piece[1 << 16];
  while (const size_t n = std::fread(piece, 1, sizeof(piece), file)) {
    if (text.size() + n > kMaxInputBytes) {
      return absl::OutOfRangeError(
          absl::StrCat(path, ": it has more than ", kMaxInputBytes >> 20, " MiB, or no end"));
    }
    text.append(piece, n);
  }
  if (std::ferror(file) != 0) return failed("it can't be read");
  return text;
}

absl::StatusOr<std::string> ReadPrompt(const PromptSource& source) {
  if (!source.given()) {
    return absl::InvalidArgumentError("there is no text: give some with -p TEXT or -f FILE");
  }
  absl::StatusOr<std::string> text = source.file.empty() ? source.text : ReadWholeFile(source.file);
  if (!text.ok()) return text;
  const absl::Status valid = ValidateUtf8(*text, source.file.empty() ? "the prompt" : source.file);
  if (!valid.ok()) return valid;
  return text;
}

std::string DefaultModelPath() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path prefix = program.parent_path().parent_path();
  return (prefix / "share" / "trine" / "models" / "tales-27m-q8_0.gguf").string();
}

}  // namespace trine
