#include "backends/vulkan/validation_log.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

namespace trine::vulkan {
namespace {

class ValidationLog {
 public:
  explicit ValidationLog(std::string path) : path_(std::move(path)) {}
  ~ValidationLog() { Append("done: " + std::to_string(count_.load()) + " messages"); }

  void Add(std::string message) {
    ++count_;
    std::replace(message.begin(), message.end(), '\n', ' ');
    Append(message);
  }

 private:
  // Opened each time: several processes write, and one may be killed.
  void Append(const std::string& line) const {
    std::FILE* file = std::fopen(path_.c_str(), "a");
    if (file == nullptr) return;
    std::fputs((line + "\n").c_str(), file);
    std::fclose(file);
  }

  std::string path_;
  std::atomic<uint64_t> count_{0};
};

}  // namespace

Messages::Sink ValidationLogFromEnvironment() {
  const char* path = std::getenv("TRINE_VULKAN_MESSAGES");
  if (path == nullptr || *path == '\0') return nullptr;
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fclose(file);
  } else {
    std::fprintf(stderr, "vulkan: TRINE_VULKAN_MESSAGES=%s can't be written: printed instead\n",
                 path);
    return nullptr;
  }
  const auto log = std::make_shared<ValidationLog>(path);
  return [log](const std::string& message) { log->Add(message); };
}

}  // namespace trine::vulkan
