#include "dispatch/exec/trace.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace trine {
namespace {

using std::chrono::microseconds;
using Json = nlohmann::json;

// Returns the file's events of this kind.
std::vector<Json> Events(const Trace& trace, const std::string& kind) {
  std::vector<Json> events;
  const Json file = Json::parse(trace.Json());
  for (const Json& event : file["traceEvents"]) {
    if (event["ph"] == kind) events.push_back(event);
  }
  return events;
}

std::string NameOf(const Trace& trace, const Json& row) {
  for (const Json& event : Events(trace, "M")) {
    if (event["name"] == "thread_name" && event["tid"] == row) return event["args"]["name"];
  }
  return "";
}

TEST(TraceTest, SpansHaveTimesAndArguments) {
  Trace trace;
  const Trace::Track a = trace.AddTrack("a"), b = trace.AddTrack("b \"quoted\"\n");
  const auto begin = Trace::Clock::now();
  trace.Add(b, "inner", begin + microseconds(10), begin + microseconds(20), {{"bytes", 7}});
  trace.Add(b, "outer", begin, begin + microseconds(1500), {{"pass", 1}, {"tokens", -2}});
  trace.Mark(a, "lost", begin + microseconds(5), "it \\ is \x01 gone \xff", {{"placement", 3}});
  const auto spans = Events(trace, "X");
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0]["name"], "outer");  // in the order of their begins
  EXPECT_NEAR(spans[0]["dur"].get<double>(), 1500, 0.01);
  EXPECT_EQ(spans[0]["args"]["tokens"], -2);
  EXPECT_NEAR(spans[1]["ts"].get<double>() - spans[0]["ts"].get<double>(), 10, 0.01);
  EXPECT_EQ(spans[1]["tid"], spans[0]["tid"]);
  EXPECT_EQ(NameOf(trace, spans[0]["tid"]), "b \"quoted\"\n");
  const auto marks = Events(trace, "i");
  ASSERT_EQ(marks.size(), 1u);
  EXPECT_EQ(NameOf(trace, marks[0]["tid"]), "a");
  EXPECT_EQ(marks[0]["args"]["text"], "it \\ is \x01 gone ?");
  EXPECT_EQ(marks[0]["args"]["placement"], 3);
}

TEST(TraceTest, TheOldestMakeRoom) {
  Trace trace(4);
  const Trace::Track track = trace.AddTrack("a");
  const auto begin = Trace::Clock::now();
  for (int i = 0; i < 10; ++i) {
    trace.Add(track, "pass", begin + microseconds(i), begin + microseconds(i + 1), {{"n", i}});
  }
  EXPECT_EQ(trace.recorded(), 10u);
  EXPECT_EQ(trace.dropped(), 6u);
  const auto spans = Events(trace, "X");
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans.front()["args"]["n"], 6);
  EXPECT_EQ(spans.back()["args"]["n"], 9);
  const Json file = Json::parse(trace.Json());
  EXPECT_EQ(file["otherData"]["dropped"], 6);
  EXPECT_EQ(file["otherData"]["events"], 4);
}

TEST(TraceTest, WhatOverlapsHasRowsOfItsOwn) {
  Trace trace;
  const Trace::Track lane = trace.AddTrack("lane", Trace::Overlap::kRows);
  const auto begin = Trace::Clock::now();
  trace.Add(lane, "sample", begin + microseconds(5), begin + microseconds(7));
  trace.Add(lane, "sample", begin, begin + microseconds(10));
  trace.Add(lane, "sample", begin + microseconds(10), begin + microseconds(12));
  const auto spans = Events(trace, "X");
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(NameOf(trace, spans[0]["tid"]), "lane 2");
  EXPECT_EQ(NameOf(trace, spans[1]["tid"]), "lane");
  EXPECT_EQ(NameOf(trace, spans[2]["tid"]), "lane");
}

TEST(TraceTest, WhatEndedBeforeCanBeLeftOut) {
  Trace trace;
  const Trace::Track old = trace.AddTrack("old"), now = trace.AddTrack("now");
  const auto begin = Trace::Clock::now();
  trace.Add(old, "pass", begin, begin + microseconds(5), {{"n", 1}});
  trace.Add(now, "pass", begin + microseconds(1), begin + microseconds(6), {{"n", 2}, {"m", 7}});
  trace.Mark(now, "lost", begin + microseconds(9), "why");
  const auto since = begin + microseconds(6);
  const Json file = Json::parse(trace.Json(since));
  EXPECT_EQ(file["otherData"]["events"], 2);
  std::vector<std::string> names;
  for (const Json& e : file["traceEvents"]) {
    if (e["name"] == "thread_name") names.push_back(e["args"]["name"]);
  }
  EXPECT_EQ(names, std::vector<std::string>{"now"});
  const std::vector<Trace::Shown> shown = trace.Since(since);
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0].track, now);
  EXPECT_STREQ(shown[0].name, "pass");
  EXPECT_EQ(shown[0].end, since);
  EXPECT_EQ(shown[0].arg("n"), 2);
  EXPECT_EQ(shown[0].arg("m"), 7);
  EXPECT_EQ(shown[0].arg("tokens"), 0);
  EXPECT_EQ(trace.Since(begin).size(), 3u);
}

TEST(TraceTest, ThreadsMayRecordWhileItIsRead) {
  Trace trace(500);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&trace, t] {
      const Trace::Track track = trace.AddTrack(std::to_string(t), Trace::Overlap::kRows);
      for (int i = 0; i < 1000; ++i) {
        trace.Add(track, "pass", Trace::Clock::now(), Trace::Clock::now(), {{"n", i}});
        if (i % 100 == 0) trace.Mark(track, "lost", Trace::Clock::now(), "why");
      }
    });
  }
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Json::accept(trace.Json()));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(trace.recorded(), 3030u);
  EXPECT_EQ(trace.dropped(), 2530u);
}

}  // namespace
}  // namespace trine
