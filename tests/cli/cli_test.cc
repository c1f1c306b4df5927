// Tests the trine command from outside: its output, its exit codes, and that neither a machine nor
// a plugin can make it crash.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_fixture.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using trine::Output;

class CliTest : public trine::CliFixture {
 protected:
  json DetectJson(const std::string& arguments, const std::string& environment = "") {
    const Output output = Trine("detect --json " + arguments, environment);
    EXPECT_EQ(output.code, 0) << output.errors;
    EXPECT_EQ(output.errors, "");
    json parsed = json::parse(output.text, nullptr, false);
    EXPECT_TRUE(parsed.is_object()) << output.text;
    return parsed;
  }
  static json PluginOf(const json& report, const std::string& part_of_path) {
    for (const auto& plugin : report["plugins"]) {
      if (plugin["path"].get<std::string>().find(part_of_path) != std::string::npos) return plugin;
    }
    return json();
  }
};

TEST_F(CliTest, HelpAndVersion) {
  EXPECT_THAT(Trine("--version").text, HasSubstr("plugin ABI 1.0, numerics 1"));
  for (const char* help : {"--help", "detect --help", "plugin check --help", ""}) {
    const Output output = Trine(help);
    EXPECT_EQ(output.code, 0) << help;
    EXPECT_THAT(output.text, HasSubstr("Usage")) << help;
  }
}

TEST_F(CliTest, WrongArgumentsExitWithTwo) {
  for (const char* wrong :
       {"dettect", "detect --jsn", "detect extra", "plugin", "plugin check", "plugin check a b",
        "plugin check x --timeout soon", "plugin check x --timeout 0", "detect --plugin"}) {
    const Output output = Trine(wrong);
    EXPECT_EQ(output.code, 2) << wrong;
    EXPECT_NE(output.errors, "") << wrong;
  }
}

TEST_F(CliTest, DetectNamesThisMachine) {
  const json report = DetectJson("");
  EXPECT_NE(report["cpu"]["arch"], "");
  EXPECT_NE(report["cpu"]["model"], "");
  EXPECT_GT(report["cpu"]["threads"], 0);
  EXPECT_GT(report["memory"]["total_bytes"], 1 << 20);
  EXPECT_LE(report["memory"]["available_bytes"], report["memory"]["total_bytes"]);
  EXPECT_FALSE(report["cpu"]["features"].empty());
  for (const auto& feature : report["cpu"]["features"]) {
    EXPECT_TRUE(feature["advertised"].get<bool>() || !feature["usable"].get<bool>()) << feature;
    if (feature["advertised"].get<bool>() && !feature["usable"].get<bool>()) {
      EXPECT_NE(feature.value("reason", ""), "") << feature;
    }
  }
  EXPECT_EQ(report["devices"][0]["name"], "cpu");
  EXPECT_EQ(report["devices"][0]["used"], true);
  EXPECT_EQ(report["memory_pools"][0]["devices"][0], "cpu");
  EXPECT_TRUE(report["problems"].empty()) << report["problems"];
  EXPECT_EQ(PluginOf(report, "backend-cpu")["used"], true);
}

TEST_F(CliTest, DetectPrintsATable) {
  const Output output = Trine("detect");
  EXPECT_EQ(output.code, 0);
  for (const char* part :
       {"CPU ", "SIMD ", "Memory ", "Devices", "Memory pools", "Weights that are not packed",
        "Plugins", "libtrine-backend-cpu.so", "serves the cpu tier"}) {
    EXPECT_THAT(output.text, HasSubstr(part));
  }
}

TEST_F(CliTest, EveryMadeUpMachineGetsItsTier) {
  std::istringstream list(Shell("'" MAKE_FAKE_ROOT "' --list").text);
  std::string name, tier;
  int machines = 0;
  while (list >> name >> tier) {
    const std::string root = (folder_ / name).string();
    ASSERT_EQ(Shell("'" MAKE_FAKE_ROOT "' " + name + " " + root).code, 0) << name;
    EXPECT_EQ(DetectJson("--root " + root)["tier"], tier) << name;
    EXPECT_EQ(Trine("detect --root " + root).code, 0) << name;
    ++machines;
  }
  EXPECT_GE(machines, 8);
}

TEST_F(CliTest, AbsentRootIsAWrongArgument) {
  EXPECT_EQ(Trine("detect --root /nowhere/at/all").code, 2);
}

TEST_F(CliTest, LostOutputIsAFailure) {
  for (const char* arguments : {"detect", "detect --json", "--help", "--version"}) {
    const Output output = Trine(std::string(arguments) + " >/dev/full");
    EXPECT_EQ(output.code, 1) << arguments;
    EXPECT_THAT(output.errors, HasSubstr("could not be written")) << arguments;
  }
}

TEST_F(CliTest, FileAndPluginAgreeOnTheName) {
  fs::copy_file(TRINE_CPU_PLUGIN, folder_ / "libtrine-backend-other.so");
  const json report = DetectJson("--plugin " + folder_.string());
  EXPECT_THAT(PluginOf(report, "backend-other")["reason"], HasSubstr("rename the file"));
}

TEST_F(CliTest, BadFilesAreFindings) {
  const fs::path text = folder_ / "libtrine-backend-text.so";
  std::ofstream(text) << "this is no shared object, however long it goes on: "
                      << std::string(99, 'x');
  fs::create_directory(folder_ / "libtrine-backend-folder.so");
  fs::create_symlink("/nowhere", folder_ / "libtrine-backend-dangling.so");
  const json report = DetectJson("--plugin " + folder_.string() + " --plugin /nowhere/x.so");
  EXPECT_THAT(PluginOf(report, "backend-text")["reason"], HasSubstr("not a shared object"));
  EXPECT_THAT(PluginOf(report, "backend-folder")["reason"], HasSubstr("not a file"));
  EXPECT_THAT(PluginOf(report, "backend-dangling")["reason"], HasSubstr("no such file"));
  EXPECT_THAT(PluginOf(report, "/nowhere/x.so")["reason"], HasSubstr("no such file"));
  EXPECT_EQ(PluginOf(report, "backend-cpu")["used"], true) << "the rest goes on";
}

// Looks at every broken plugin at once: each is a finding with a reason, sound ones are used, and
// the program survives.
TEST_F(CliTest, BrokenPluginsTakeNothingDown) {
  const json report = DetectJson("--plugin " BROKEN_PLUGINS, "TRINE_PROBE_TIMEOUT_MS=3000");
  const auto reason = [&](const std::string& name) {
    return PluginOf(report, "backend-" + name + ".so").value("reason", "not found");
  };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const char* crash = "while being loaded";  // the sanitizer turns the signal into an exit code
#else
  const char* crash = "crashed with SIGSEGV";
#endif
  EXPECT_THAT(reason("crash-on-load"), HasSubstr(crash));
  EXPECT_THAT(reason("hang-on-load"), HasSubstr("did not answer within 3 s while being loaded"));
  EXPECT_THAT(reason("hang-on-open"), HasSubstr("did not answer within 3 s while being opened"));
  EXPECT_THAT(reason("wrong-major"), HasSubstr("ABI"));
  EXPECT_THAT(reason("short-table"), HasSubstr("function table has"));
  EXPECT_THAT(reason("not-a-plugin"), HasSubstr("does not export trine_plugin_query"));
  EXPECT_THAT(reason("missing-library"), HasSubstr("missing library: it needs lib"));
  EXPECT_THAT(reason("throws-in-open"), HasSubstr("threw an exception"));
  EXPECT_THAT(reason("null-function"), HasSubstr("lacks the required function"));
  EXPECT_EQ(PluginOf(report, "backend-cpu")["used"], true);
}

TEST_F(CliTest, MissingProbeIsSaidWithItsPlaces) {
  const json report = DetectJson("", "TRINE_PROBE=/nowhere/trine-probe");
  EXPECT_THAT(PluginOf(report, "backend-cpu")["reason"], HasSubstr("/nowhere/trine-probe"));
  EXPECT_FALSE(report["problems"].empty());
}

// Plugins and the probe must not come from the current folder, even if the program was found on the
// PATH and a file of its name is there.
TEST_F(CliTest, CurrentFolderIsNotSearched) {
  fs::copy_file(TRINE_CPU_PLUGIN, folder_ / "libtrine-backend-here.so");
  std::ofstream(folder_ / "trine") << "#!/bin/sh\n";
  std::ofstream(folder_ / "trine-probe")
      << "#!/bin/sh\ntouch " << (folder_ / "ran").string() << "\n";
  fs::permissions(folder_ / "trine-probe", fs::perms::owner_all);
  fs::create_directory(folder_ / "bin");
  fs::copy_file(TRINE_PROGRAM, folder_ / "bin/trine");  // an installation without its probe
  const std::string bin = fs::path(TRINE_PROGRAM).parent_path().string();
  for (const std::string& path : {bin, (folder_ / "bin").string()}) {
    for (const char* extra : {"", "TRINE_PROBE=./trine-probe ", "TRINE_PLUGIN_PATH=. "}) {
      const Output output = Shell("cd " + folder_.string() + " && PATH='" + path + "':$PATH " +
                                  extra + "trine detect --json");
      EXPECT_EQ(output.code, 0) << output.errors;
      EXPECT_THAT(output.text, Not(HasSubstr("backend-here"))) << path << " " << extra;
    }
  }
  EXPECT_FALSE(fs::exists(folder_ / "ran"));
}

TEST_F(CliTest, PipesAndDevicesDoNotHangIt) {
  ASSERT_EQ(Shell("mkfifo " + (folder_ / "libtrine-backend-pipe.so").string()).code, 0);
  fs::create_symlink("/dev/zero", folder_ / "libtrine-backend-zero.so");
  const json report = DetectJson("--plugin " + folder_.string());
  EXPECT_THAT(PluginOf(report, "backend-pipe")["reason"], HasSubstr("not a file"));
  EXPECT_THAT(PluginOf(report, "backend-zero")["reason"], HasSubstr("not a file"));
}

TEST_F(CliTest, CheckOfNothingIsAFailureWithAReason) {
  for (const char* path : {"/nowhere/x.so", "/dev/null", "/tmp"}) {
    const Output output = Trine(std::string("plugin check ") + path);
    EXPECT_EQ(output.code, 1) << path;
    EXPECT_NE(output.text + output.errors, "") << path;
  }
}

TEST_F(CliTest, FilterThatNamesNoCheckIsAWrongArgument) {
  const Output output = Trine("plugin check --filter op/matmull '" TRINE_CPU_PLUGIN "'");
  EXPECT_EQ(output.code, 2) << output.text;
  EXPECT_NE(output.errors, "");
}

TEST_F(CliTest, CpuBackendPassesTheKit) {
  const std::string count = std::getenv("TRINE_LONG") != nullptr ? "--long " : "";
  const Output output = Trine("plugin check --json " + count + "'" TRINE_CPU_PLUGIN "'");
  EXPECT_EQ(output.code, 0) << output.text;
  const json report = json::parse(output.text, nullptr, false);
  ASSERT_TRUE(report.is_object()) << output.text;
  EXPECT_EQ(report["failed"], 0);
  EXPECT_GT(report["passed"], 50);
}

}  // namespace
