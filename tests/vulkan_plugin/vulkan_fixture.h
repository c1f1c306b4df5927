// Runs the trine command with a Vulkan device.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/cli/cli_fixture.h"

namespace trine {

class VulkanFixture : public CliFixture {
 protected:
  // Skips without a device, or fails if there must be one.
  void SetUp() override {
    static const bool found = FindsDevice();
    if (found) return;
    if (std::getenv("TRINE_REQUIRE_VULKAN") != nullptr) FAIL() << "no Vulkan device was found";
    GTEST_SKIP() << "no Vulkan device was found";
  }

  // Turns validation on, with its messages in a file.
  std::string Validated() const {
    return "TRINE_VULKAN_VALIDATE=1 TRINE_VULKAN_MESSAGES=" + Messages();
  }
  // Returns success if validation was on in at least one process and found nothing in any.
  ::testing::AssertionResult SaidNothing() const {
    std::ifstream file(Messages());
    int processes = 0;
    for (std::string line; std::getline(file, line);) {
      if (line != "done: 0 messages") return ::testing::AssertionFailure() << line;
      ++processes;
    }
    if (processes == 0) return ::testing::AssertionFailure() << "nothing was validated";
    return ::testing::AssertionSuccess();
  }

 private:
  std::string Messages() const { return (folder_ / "messages").string(); }

  bool FindsDevice() {
    const Output output = Trine("detect --json");
    const auto found = nlohmann::json::parse(output.text, nullptr, false);
    if (output.code != 0 || found.is_discarded()) return false;
    const auto devices = found.value("devices", nlohmann::json::array());
    return std::any_of(devices.begin(), devices.end(), [](const nlohmann::json& device) {
      return device.value("plugin", "") == "vulkan" && device["info"].value("reason", "-").empty();
    });
  }
};

}  // namespace trine
