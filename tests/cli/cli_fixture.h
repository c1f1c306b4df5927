// Runs the trine command and keeps its output.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace trine {

namespace fs = std::filesystem;

struct Output {
  int code = -1;  // 128 + signal if a signal ended it
  std::string text;
  std::string errors;
};

class CliFixture : public ::testing::Test {
 protected:
  CliFixture() : folder_(fs::path(::testing::TempDir()) / ("cli." + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~CliFixture() override { fs::remove_all(folder_); }

  // `command` is a shell command line.
  Output Shell(const std::string& command) {
    Output output;
    const std::string errors = (folder_ / "stderr").string();
    FILE* pipe = popen((command + " 2>" + errors).c_str(), "r");
    if (pipe == nullptr) return output;
    char buffer[4096];
    for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
      output.text.append(buffer, n);
    }
    const int status = pclose(pipe);
    output.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    std::stringstream text;
    text << std::ifstream(errors).rdbuf();
    output.errors = text.str();
    return output;
  }
  Output Trine(const std::string& arguments, const std::string& environment = "") {
    return Shell(environment + " '" TRINE_PROGRAM "' " + arguments);
  }

  // Runs the command, and sends it the signal once it has begun to write the file `out`.
  Output SignalWhileWriting(const std::string& signal, const std::string& arguments,
                            const std::string& out) {
    return Shell("( '" TRINE_PROGRAM "' " + arguments + " & pid=$!; while [ -z \"$(ls " + out +
                 ".tmp-* 2>/dev/null)\" ] && kill -0 $pid; do sleep 0.02; done; kill -" + signal +
                 " $pid; wait $pid )");
  }
  // Counts unfinished files.
  int Leftovers() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      count += entry.path().string().find(".tmp-") != std::string::npos;
    }
    return count;
  }

  fs::path folder_;
};

}  // namespace trine
