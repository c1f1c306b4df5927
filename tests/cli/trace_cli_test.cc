// Tests --trace from outside: the file can be drawn as a timeline, however the run ended.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_fixture.h"

namespace trine {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

struct Span {
  std::string name;
  double begin, end;
  Json args;
};

class TraceCliTest : public CliFixture {
 protected:
  std::string path() const { return (folder_ / "trace.json").string(); }

  // Returns the spans by track name, in the order of their begins.
  std::map<std::string, std::vector<Span>> Read() {
    std::stringstream text;
    text << std::ifstream(path()).rdbuf();
    const Json file = Json::parse(text.str(), nullptr, false);
    EXPECT_FALSE(file.is_discarded()) << text.str().substr(0, 500);
    std::map<std::string, std::vector<Span>> tracks;
    if (file.is_discarded()) return tracks;
    EXPECT_EQ(file["otherData"]["dropped"], 0);
    std::map<int, std::string> names;
    for (const Json& event : file["traceEvents"]) {
      if (event["name"] == "thread_name") names[event["tid"]] = event["args"]["name"];
    }
    for (const Json& event : file["traceEvents"]) {
      if (event["ph"] == "M") continue;
      const double begin = event["ts"];
      const double end = begin + (event["ph"] == "X" ? event["dur"].get<double>() : 0);
      EXPECT_EQ(names.count(event["tid"]), 1u);
      tracks[names[event["tid"]]].push_back({event["name"], begin, end, event["args"]});
    }
    return tracks;
  }

  static std::vector<Span> Named(const std::vector<Span>& spans, const std::string& name) {
    std::vector<Span> found;
    std::copy_if(spans.begin(), spans.end(), std::back_inserter(found),
                 [&](const Span& s) { return s.name == name; });
    return found;
  }

  static std::vector<std::string> Names(const std::vector<Span>& spans) {
    std::vector<std::string> names;
    for (const Span& s : spans) names.push_back(s.name);
    return names;
  }

  Output OverTwo(const std::string& more, const std::string& environment = "") {
    return Trine("generate -p 'Once upon a time' -n 10 --temp 0 --plugin '" TRINE_SEVERAL_PLUGIN
                 "' -ts several0:50%,several1:50% --trace " +
                     path() + " " + more,
                 environment);
  }
};

TEST_F(TraceCliTest, StagesOverlapAndTheirPartsNest) {
  const Output output = OverTwo("-np 6 --json", "TRINE_FIXTURE_SEVERAL=5000");
  ASSERT_EQ(output.code, 0) << output.errors;
  auto tracks = Read();
  const auto first = Named(tracks["several0 layers 0-15"], "pass");
  const auto second = Named(tracks["several1 layers 16-31"], "pass");
  ASSERT_EQ(first.size(), second.size());
  int overlaps = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].args["pass"], i + 1);
    EXPECT_EQ(first[i].args, second[i].args);  // pass, tokens, sequences, placement
    EXPECT_GE(second[i].begin, first[i].end);  // of one pass
    for (const Span& other : second) {         // of different ones
      overlaps += other.begin < first[i].end && first[i].begin < other.end;
    }
  }
  EXPECT_GE(overlaps, static_cast<int>(first.size()) / 2);
  for (const auto& [track, spans] : tracks) {
    if (track.rfind("several", 0) != 0) continue;
    const auto passes = Named(spans, "pass");
    for (const Span& part : spans) {
      const bool inside = std::any_of(passes.begin(), passes.end(), [&](const Span& p) {
        return p.begin - 0.01 <= part.begin && part.end <= p.end + 0.01;
      });
      EXPECT_EQ(inside, part.name != "bubble" && part.name != "blocked") << part.name;
    }
  }
  EXPECT_FALSE(Named(tracks["several1 layers 16-31"], "bubble").empty());
  EXPECT_EQ(Named(tracks["lane"], "sample").size(), 60u);
  EXPECT_EQ(Named(tracks["host"], "prepare").size(), first.size());
  EXPECT_EQ(Named(tracks["engine"], "load").size(), 1u);

  // The counters must agree.
  const Json placement = Json::parse(output.text)["placement"];
  for (size_t i = 0; i < 2; ++i) {
    const auto& passes = i == 0 ? first : second;
    const auto& spans = tracks[i == 0 ? "several0 layers 0-15" : "several1 layers 16-31"];
    double busy_us = 0, waiting_us = 0;
    uint64_t tokens = 0, bytes_in = 0, bytes_out = 0;
    for (const Span& s : passes) {
      busy_us += s.end - s.begin;
      tokens += s.args["tokens"].get<uint64_t>();
    }
    for (const Span& s : spans) {
      if (s.name == "bubble") waiting_us += s.end - s.begin;
      if (s.name == "write inputs") bytes_in += s.args["bytes"].get<uint64_t>();
      if (s.name == "hand on" || s.name == "read output") {
        bytes_out += s.args["bytes"].get<uint64_t>();
      }
    }
    EXPECT_EQ(placement[i]["passes"], passes.size());
    EXPECT_EQ(placement[i]["tokens"], tokens);
    EXPECT_EQ(placement[i]["bytes_in"], bytes_in);
    EXPECT_EQ(placement[i]["bytes_out"], bytes_out);
    const double busy_ms = placement[i]["busy_ms"], waiting_ms = placement[i]["waiting_ms"];
    EXPECT_NEAR(busy_ms, busy_us / 1000, 0.2 * busy_ms);
    EXPECT_NEAR(waiting_ms, waiting_us / 1000, 1);
    EXPECT_NEAR(placement[i]["busy_ratio"].get<double>(),
                busy_ms / (busy_ms + waiting_ms + placement[i]["blocked_ms"].get<double>()), 1e-6);
  }
}

TEST_F(TraceCliTest, ALossIsSeenWithWhatItCosts) {
  const Output output = OverTwo("", "TRINE_FAULT='several1:lost@token=4'");
  ASSERT_EQ(output.code, 0) << output.errors;
  auto tracks = Read();
  EXPECT_EQ(Named(tracks["several1 layers 16-31"], "failed pass").size(), 1u);
  const auto lost = Named(tracks["engine"], "lost");
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_THAT(lost[0].args["text"].get<std::string>(), HasSubstr("several1: "));
  EXPECT_EQ(Named(tracks["engine"], "recovery").size(), 1u);
  const auto replay = Named(tracks["host"], "replay");
  ASSERT_EQ(replay.size(), 1u);
  const auto after = Named(tracks["cpu layers 16-31, placement 2"], "pass");
  ASSERT_FALSE(after.empty());
  EXPECT_EQ(after[0].args["replayed"], replay[0].args["tokens"]);
  EXPECT_EQ(after.back().args["replayed"], 0);
}

TEST_F(TraceCliTest, IsThereAfterAnErrorToo) {
  const Output output = Trine("generate -p 'Once upon a time' -n 10 --temp 0 --trace " + path(),
                              "TRINE_FAULT='cpu:lost@token=4'");
  EXPECT_EQ(output.code, 1);
  auto tracks = Read();
  EXPECT_EQ(Named(tracks["engine"], "lost").size(), 1u);
  EXPECT_THAT(Names(tracks["cpu layers 0-31"]), Contains("failed pass"));
  EXPECT_EQ(Leftovers(), 0);
}

// A shell's background jobs ignore the signal, so the program is not started as one.
TEST_F(TraceCliTest, IsThereAfterAnInterruptToo) {
  const std::string text = (folder_ / "text").string(), trace = path();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    setenv("TRINE_FAULT", "cpu:slow=20@run", 1);
    if (std::freopen(text.c_str(), "w", stdout) == nullptr) _exit(99);
    execl(TRINE_PROGRAM, TRINE_PROGRAM, "generate", "-p", "Once", "-n", "2000", "--temp", "0",
          "--ignore-eos", "--no-display-prompt", "--trace", trace.c_str(), nullptr);
    _exit(99);
  }
  int status = 0;
  while (!fs::exists(text) || fs::file_size(text) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_EQ(waitpid(child, &status, WNOHANG), 0) << "it ended by itself";
  }
  kill(child, SIGINT);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  auto tracks = Read();
  EXPECT_FALSE(Named(tracks["cpu layers 0-31"], "pass").empty());
  EXPECT_FALSE(Named(tracks["lane"], "sample").empty());
}

TEST_F(TraceCliTest, OtherCommandsHaveItToo) {
  std::ofstream(folder_ / "text") << std::string(600, 'a') << " once upon a time";
  const std::string text = (folder_ / "text").string();
  Output output = Trine("perplexity -c 16 --chunks 2 -f " + text + " --trace " + path());
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_EQ(Named(Read()["cpu layers 0-31"], "pass").size(), 2u);
  output = Shell("echo Hello | '" TRINE_PROGRAM "' chat -n 3 --trace " + path());
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_FALSE(Named(Read()["cpu layers 0-31"], "pass").empty());
  output = Trine("embed -p Hello --trace " + path());
  EXPECT_EQ(output.code, 0) << output.errors;
  EXPECT_EQ(Named(Read()["cpu layers 0-31"], "pass").size(), 1u);
}

TEST_F(TraceCliTest, WhatCannotBeWrittenIsSaidBeforeTheModelIsLoaded) {
  const Output output = Trine("generate -p Once -m /no/such/model --trace /no/such/folder/t.json");
  EXPECT_EQ(output.code, 1);
  EXPECT_EQ(output.text, "");
  EXPECT_THAT(output.errors, HasSubstr("the trace /no/such/folder/t.json: cannot be created"));
}

TEST_F(TraceCliTest, WhatCannotBeWrittenInTheEndIsAnErrorOnce) {
  fs::create_directories(folder_ / "in");
  const std::string file = (folder_ / "in" / "t.json").string();
  const Output output =
      Shell("( TRINE_FAULT='cpu:slow=100@run' '" TRINE_PROGRAM
            "' generate -p Once -n 12 --temp 0 --trace " +
            file + " & pid=$!; sleep 0.7; rmdir " + (folder_ / "in").string() + "; wait $pid )");
  EXPECT_EQ(output.code, 1) << output.errors;
  const size_t at = output.errors.find("cannot be created");
  ASSERT_NE(at, std::string::npos) << output.errors;
  EXPECT_EQ(output.errors.find("cannot be created", at + 1), std::string::npos) << output.errors;
}

}  // namespace
}  // namespace trine
