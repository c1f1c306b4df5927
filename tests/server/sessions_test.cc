// Tests /v1/sessions as clients see it: continuing, regressing, forks, limits.
#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/server/server_fixture.h"

namespace trine::server {
namespace {

using ::testing::HasSubstr;

class SessionsTest : public ServerTest {
 protected:
  static std::string At(const std::string& id, std::string_view rest = "") {
    return absl::StrCat("/v1/sessions/", id, std::string(rest));
  }
  // Opens a session and returns its name.
  std::string Open(const Json& request) const {
    const RawAnswer answer = Post("/v1/sessions", request);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return Body(answer).value("id", "?");
  }
  Json Use(const std::string& id, std::string_view what, const Json& request = Json::object()) {
    const RawAnswer answer = Post(At(id, what), request);
    EXPECT_EQ(answer.status, 200) << what << ": " << answer.body;
    return Body(answer);
  }
  std::string Generate(const std::string& id, int n) {
    const Json json = Use(id, "/generate", {{"max_tokens", n}});
    return json.contains("choices") ? json["choices"][0]["text"].get<std::string>() : "?";
  }
  std::vector<std::string> Fork(const std::string& id, const Json& request) {
    std::vector<std::string> ids;
    const Json answer = Use(id, "/fork", request);
    for (const Json& fork : answer["data"]) ids.push_back(fork["id"]);
    return ids;
  }
  Json Tokens(const std::string& id) const {
    return Body(Get(At(id, "?text=true"))).value("token_ids", Json());
  }
  void ExpectError(const RawAnswer& answer, int status, const Json& param, const Json& code) const {
    EXPECT_EQ(answer.status, status) << answer.body;
    const Json json = Body(answer);
    ASSERT_TRUE(json.is_object() && json.contains("error")) << answer.body;
    EXPECT_EQ(json["error"]["param"], param) << answer.body;
    EXPECT_EQ(json["error"]["code"], code) << answer.body;
  }
};

const Json kDrawn = {
    {"prompt", "once there was"}, {"temperature", 1.5}, {"seed", 11}, {"ignore_eos", true}};

TEST_F(SessionsTest, GoesOnFromWhereItStands) {
  Start({});
  const std::string id = Open({{"prompt", "a tale of foxes"}, {"ignore_eos", true}});
  const Json begun = Body(Get(At(id)));
  EXPECT_EQ(begun["object"], "session");
  EXPECT_EQ(begun["busy"], false);
  EXPECT_EQ(begun["model"], "tiny");
  const std::string whole =
      Completion({{"prompt", "a tale of foxes"}, {"max_tokens", 20}, {"ignore_eos", true}});
  const std::string first = Generate(id, 8);
  EXPECT_EQ(first + Generate(id, 12), whole);
  // Appended text is read as it is, without a beginning-of-text token.
  Json tokens = Tokens(id);
  EXPECT_EQ(tokens.size(), begun["tokens"].get<size_t>() + 20);
  const Json more = Body(Post("/tokenize", {{"content", " and hares"}, {"add_special", false}}));
  EXPECT_EQ(Use(id, "/append", {{"prompt", " and hares"}})["tokens"],
            tokens.size() + more["tokens"].size());
  tokens.insert(tokens.end(), more["tokens"].begin(), more["tokens"].end());
  EXPECT_EQ(Tokens(id), tokens);
  EXPECT_EQ(Generate(id, 10),
            Completion({{"prompt", tokens}, {"max_tokens", 10}, {"ignore_eos", true}}));
  // Usage counts everything before the answer, nearly all of which has been evaluated.
  const Json usage = Use(id, "/generate", {{"max_tokens", 2}, {"logprobs", 1}})["usage"];
  EXPECT_EQ(usage["prompt_tokens"], tokens.size() + 10);
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], tokens.size() + 9);
  EXPECT_THAT(Body(Get(At(id, "?text=true")))["text"].get<std::string>(), HasSubstr("and hares"));
  EXPECT_EQ(Body(Delete(At(id)))["deleted"], true);
  ExpectError(Get(At(id)), 404, nullptr, "session_not_found");
  EXPECT_EQ(Metric("trine_sessions"), 0);
}

TEST_F(SessionsTest, AStreamIsTheSameText) {
  Start({});
  const std::string id = Open({{"prompt", "a brook"}, {"ignore_eos", true}});
  const Json t = Use(id, "/checkpoint")["t"];
  const std::string whole = Generate(id, 24);
  Use(id, "/regress", {{"t", t}});
  const RawAnswer answer =
      Post(At(id, "/generate"),
           {{"max_tokens", 24}, {"stream", true}, {"stream_options", {{"include_usage", true}}}});
  EXPECT_TRUE(absl::EndsWith(answer.body, "data: [DONE]\n\n")) << answer.body;
  std::string joined;
  for (const Json& frame : Frames(answer.body)) {
    if (!frame["choices"].empty()) joined += frame["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(joined, whole);
  EXPECT_EQ(Frames(answer.body).back()["usage"]["completion_tokens"], 24);
}

TEST_F(SessionsTest, ChatsBeginWithTheirTemplate) {
  Start({});
  const Json messages = {{{"role", "user"}, {"content", "hello there"}}};
  const std::string id = Open({{"messages", messages}, {"ignore_eos", true}});
  const Json chat = Body(Post("/v1/chat/completions",
                              {{"messages", messages}, {"max_tokens", 16}, {"ignore_eos", true}}));
  EXPECT_EQ(chat["choices"][0]["message"]["content"], Generate(id, 16));
}

TEST_F(SessionsTest, GoingBackGivesTheSameAgain) {
  Start({});
  for (const double temperature : {0.0, 1.5}) {
    Json request = kDrawn;
    request["temperature"] = temperature;
    const std::string id = Open(request);
    const std::string begun = Generate(id, 5);
    const Json point = Use(id, "/checkpoint");
    const std::string one = Generate(id, 12);
    EXPECT_EQ(Use(id, "/regress", {{"t", point["t"]}})["tokens"], point["tokens"]);
    EXPECT_EQ(Generate(id, 12), one) << temperature;
    Use(id, "/regress", {{"t", point["t"]}});
    Use(id, "/append", {{"prompt", "another way"}});
    EXPECT_NE(Generate(id, 12), one);
    request["max_tokens"] = 17;
    EXPECT_EQ(begun + one, Completion(request));
    // Later checkpoints vanish with the tokens that they were made at.
    Use(id, "/regress", {{"t", point["t"]}});
    const Json later = Use(id, "/checkpoint")["t"];
    EXPECT_EQ(later, point["t"].get<int>() + 1);  // appended tokens took no number
    EXPECT_EQ(Body(Get(At(id)))["checkpoints"].size(), 2u);
    Use(id, "/regress", {{"t", point["t"]}});
    ExpectError(Post(At(id, "/regress"), {{"t", later}}), 404, "t", "checkpoint_not_found");
    EXPECT_EQ(Delete(At(id, absl::StrCat("/checkpoints/", point["t"].dump()))).status, 200);
    ExpectError(Post(At(id, "/regress"), {{"t", point["t"]}}), 404, "t", "checkpoint_not_found");
  }
}

TEST_F(SessionsTest, ForksStandWhereTheirOriginDoes) {
  Start({.places = 8});
  const std::string id = Open(kDrawn);
  const std::vector<std::string> same = Fork(id, Json::object());
  ASSERT_EQ(same.size(), 1u);
  EXPECT_EQ(Tokens(same[0]), Tokens(id));
  EXPECT_EQ(Generate(same[0], 12), Generate(id, 12));
  const std::string origin = Open(kDrawn);
  const auto texts = [&] {
    std::vector<std::string> texts;
    for (const std::string& fork : Fork(origin, {{"n", 4}, {"seed", 100}})) {
      texts.push_back(Generate(fork, 12));
    }
    return texts;
  };
  const std::vector<std::string> one = texts();
  EXPECT_EQ(std::set<std::string>(one.begin(), one.end()).size(), 4u);
  EXPECT_EQ(texts(), one);
  Json direct = kDrawn;
  direct["max_tokens"] = 12;
  direct["seed"] = 102;
  EXPECT_EQ(one[2], Completion(direct));
  EXPECT_EQ(Metric("trine_session_forks_total"), 9);
  EXPECT_EQ(Metric("trine_sessions"), 11);
}

TEST_F(SessionsTest, ForksThatGoOnAtOnceShareTheirPasses) {
  constexpr int kForks = 8;
  Start({.places = kForks});
  const std::string id = Open({{"prompt", std::string(100, 'a')}, {"ignore_eos", true}});
  const std::vector<std::string> forks = Fork(id, {{"n", kForks}});
  std::vector<std::string> direct(kForks), branched(kForks);
  for (int i = 0; i < kForks; ++i) {
    Use(forks[i], "/append", {{"prompt", absl::StrCat("way ", i)}});
    direct[i] =
        Completion({{"prompt", Tokens(forks[i])}, {"max_tokens", 100}, {"ignore_eos", true}});
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kForks; ++i) {
    threads.emplace_back([&, i] { branched[i] = Generate(forks[i], 100); });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(branched, direct);
  int64_t most = 0;
  const Json status = Status();
  for (const Json& event : status["timeline"]["events"]) {
    most = std::max(most, event["sequences"].get<int64_t>());
  }
  EXPECT_GT(most, 1);
}

TEST_F(SessionsTest, ConstrainedAnswersGoOnAndBack) {
  Start({});
  const std::string id =
      Open({{"prompt", "yes or no?"}, {"grammar", "root ::= (\"ja\" | \"nein\") \"!\""}});
  const Json t = Use(id, "/checkpoint")["t"];
  const auto fits = [](const std::string& text) { return text == "ja!" || text == "nein!"; };
  const std::string part = Generate(id, 1);
  const std::string rest = Generate(id, 20);
  EXPECT_TRUE(fits(part + rest)) << part << "|" << rest;
  Use(id, "/regress", {{"t", t}});
  const std::string whole = Generate(id, 20);
  EXPECT_TRUE(fits(whole)) << whole;
}

TEST_F(SessionsTest, BelongsToTheKeyThatMadeIt) {
  Start({.keys = {"one", "two"}});
  const auto key = [](const char* name) {
    return absl::StrCat("Authorization: Bearer ", name, "\r\n");
  };
  const Json made = Body(Post("/v1/sessions", {{"prompt", "mine"}}, key("one")));
  const std::string id = made["id"];
  EXPECT_EQ(Get(At(id)).status, 401);
  EXPECT_EQ(Get(At(id), key("one")).status, 200);
  ExpectError(Get(At(id), key("two")), 404, nullptr, "session_not_found");
  for (const char* what : {"/generate", "/checkpoint", "/fork"}) {
    ExpectError(Post(At(id, what), Json::object(), key("two")), 404, nullptr, "session_not_found");
  }
  ExpectError(Post(At(id, "/append"), {{"prompt", "x"}}, key("two")), 404, nullptr,
              "session_not_found");
  ExpectError(Post(At(id, "/regress"), {{"t", 0}}, key("two")), 404, nullptr, "session_not_found");
  ExpectError(Delete(At(id), key("two")), 404, nullptr, "session_not_found");
  EXPECT_EQ(Body(Get("/v1/sessions", key("two")))["data"].size(), 0u);
  EXPECT_EQ(Body(Get("/v1/sessions", key("one")))["data"][0]["id"], id);
}

TEST_F(SessionsTest, OnlySoManyAndOnlySoLong) {
  Start({.sessions = {.sessions = 3, .idle = std::chrono::seconds(1)}});
  const std::string id = Open({{"prompt", "a"}});
  ExpectError(Post(At(id, "/fork"), {{"n", 3}}), 429, nullptr, "too_many_sessions");
  Fork(id, {{"n", 2}});
  const RawAnswer refused = Post("/v1/sessions", {{"prompt", "b"}});
  ExpectError(refused, 429, nullptr, "too_many_sessions");
  EXPECT_NE(refused.Header("Retry-After"), "");
  EXPECT_TRUE(Becomes([&] { return Body(Get("/v1/sessions"))["data"].empty(); }));
  EXPECT_EQ(Metric("trine_sessions_expired_total"), 3);
  EXPECT_EQ(Get(At(id)).status, 404);
  const Json kv = Status()["kv"];
  EXPECT_EQ(kv["free"].get<int>() + kv["shared"].get<int>(), kv["blocks"].get<int>());
  Open({{"prompt", "b"}});
  server_.reset();
  Start({.sessions = {.sessions = 0}});
  ExpectError(Post("/v1/sessions", {{"prompt", "b"}}), 404, nullptr, "switched_off");
  ExpectError(Get("/v1/sessions"), 404, nullptr, "switched_off");
}

TEST_F(SessionsTest, NoKeyTakesAllOfThem) {
  const auto key = [](const char* name) {
    return absl::StrCat("Authorization: Bearer ", name, "\r\n");
  };
  const auto opened = [&](const char* name) {
    return Post("/v1/sessions", {{"prompt", "a"}}, key(name));
  };
  Start({.keys = {"one", "two", "three"}, .sessions = {.sessions = 4}});
  const RawAnswer first = opened("one");
  ASSERT_EQ(first.status, 200) << first.body;
  ExpectError(Post(At(Body(first)["id"], "/fork"), {{"n", 2}}, key("one")), 429, nullptr,
              "too_many_sessions");
  EXPECT_EQ(opened("one").status, 200);
  const RawAnswer refused = opened("one");
  ExpectError(refused, 429, nullptr, "too_many_sessions");
  EXPECT_THAT(refused.body, HasSubstr("--sessions-per-key"));
  EXPECT_EQ(opened("two").status, 200);
  EXPECT_EQ(opened("three").status, 200);
  EXPECT_THAT(opened("two").body, HasSubstr("(--sessions)"));
  EXPECT_EQ(Delete(At(Body(first)["id"]), key("one")).status, 200);
  EXPECT_EQ(opened("two").status, 200);
  server_.reset();
  Start({.keys = {"one", "two"}, .sessions = {.sessions = 4, .per_owner = 4}});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(opened("one").status, 200);
  ExpectError(opened("two"), 429, nullptr, "too_many_sessions");
}

TEST_F(SessionsTest, OneRequestAtATime) {
  Start({.context = 4096});
  const std::string id = Open({{"prompt", "on and on"}, {"ignore_eos", true}});
  const int64_t begun = Body(Get(At(id)))["tokens"];
  const double before = Metric("trine_generated_tokens_total");
  RawClient client(server_->port());
  client.Send(Text("POST", At(id, "/generate"), Json{{"stream", true}}.dump()));
  ASSERT_TRUE(Becomes([&] { return Metric("trine_generated_tokens_total") > before + 3; }));
  for (const char* what : {"/generate", "/checkpoint", "/fork"}) {
    ExpectError(Post(At(id, what), Json::object()), 409, nullptr, "session_busy");
  }
  EXPECT_EQ(Body(Get(At(id)))["busy"], true);
  // A client that leaves in mid-stream leaves the session where it got to.
  client.Reset();
  EXPECT_TRUE(Becomes([&] { return Body(Get(At(id)))["busy"] == false; }));
  const Json tokens = Tokens(id);
  ASSERT_GT(tokens.size(), static_cast<size_t>(begun) + 3);
  ASSERT_LT(tokens.size(), 4096u);
  EXPECT_EQ(Generate(id, 8),
            Completion({{"prompt", tokens}, {"max_tokens", 8}, {"ignore_eos", true}}));
}

// A client can close a session without knowing what else is under way.
TEST_F(SessionsTest, ClosingOneEndsWhatIsUnderWay) {
  Start({.places = 1, .context = 4096});
  const std::string id = Open({{"prompt", "on and on"}, {"ignore_eos", true}});
  const std::string other = Open({{"prompt", "patient"}, {"ignore_eos", true}});
  const double before = Metric("trine_generated_tokens_total");
  RawClient stream(server_->port()), waiting(server_->port());
  stream.Send(Text("POST", At(id, "/generate"), Json{{"stream", true}}.dump()));
  ASSERT_TRUE(Becomes([&] { return Metric("trine_generated_tokens_total") > before + 3; }));
  waiting.Send(Text("POST", At(other, "/generate"), Json{{"max_tokens", 4}}.dump()));
  ASSERT_TRUE(Becomes([&] { return Metric("trine_requests_waiting") == 1; }));
  // A waiting request is told at once, with the place still taken.
  EXPECT_EQ(Body(Delete(At(other)))["deleted"], true);
  ExpectError(waiting.Read(), 409, nullptr, "session_closed");
  EXPECT_EQ(Metric("trine_requests_running"), 1);
  EXPECT_EQ(Body(Delete(At(id)))["deleted"], true);
  ExpectError(Get(At(id)), 404, nullptr, "session_not_found");
  ExpectError(Delete(At(id)), 404, nullptr, "session_not_found");
  EXPECT_EQ(Body(Get("/v1/sessions"))["data"].size(), 0u);
  EXPECT_THAT(stream.Read().body, HasSubstr("session_closed"));
  EXPECT_TRUE(Becomes([&] { return Metric("trine_sessions") == 0; }));
  const Json kv = Status()["kv"];
  EXPECT_EQ(kv["free"].get<int>() + kv["shared"].get<int>(), kv["blocks"].get<int>());
}

// A client that leaves just as its answer ends must not end the next client's.
TEST_F(SessionsTest, WhoLeavesLateTroublesNobody) {
  Start({});
  const std::string id = Open({{"prompt", "short"}, {"ignore_eos", true}});
  const Json t = Use(id, "/checkpoint")["t"];
  const std::string text = Generate(id, 6);
  for (int i = 0; i < 40; ++i) {
    Use(id, "/regress", {{"t", t}});
    RawClient client(server_->port());
    client.Send(Text("POST", At(id, "/generate"), Json{{"max_tokens", 2}}.dump()));
    std::this_thread::sleep_for(std::chrono::microseconds(150 * i));
    client.Reset();
    ASSERT_TRUE(Becomes([&] { return Body(Get(At(id)))["busy"] == false; }));
    ASSERT_TRUE(Becomes([&] { return Post(At(id, "/regress"), {{"t", t}}).status == 200; }));
    ASSERT_EQ(Generate(id, 6), text) << i;
  }
}

TEST_F(SessionsTest, AFullCacheIsToldToWhoAsksAndNothingIsLost) {
  // There is room for two full contexts.
  Start({.places = 2, .context = 256});
  const auto open = [&](char c) {
    return Post("/v1/sessions", {{"prompt", Json(std::vector<int>(250, c))}});
  };
  const RawAnswer one = open('a'), two = open('b'), three = open('c');
  ASSERT_EQ(one.status, 200) << one.body;
  ASSERT_EQ(two.status, 200) << two.body;
  ExpectError(three, 503, nullptr, "unavailable");
  EXPECT_EQ(Body(Get("/v1/sessions"))["data"].size(), 2u);
  EXPECT_EQ(Post("/v1/completions", {{"prompt", std::string(100, 'x')}}).status, 503);
  const std::string id = Body(one)["id"];
  const std::string text = Generate(id, 4);
  EXPECT_EQ(Delete(At(Body(two)["id"])).status, 200);
  EXPECT_EQ(text, Completion({{"prompt", Json(std::vector<int>(250, 'a'))}, {"max_tokens", 4}}));
  // An append that finds no room leaves the session unchanged.
  const std::string small = Open({{"prompt", Json(std::vector<int>(60, 'd'))}});
  const Json before = Tokens(small);
  ASSERT_EQ(open('e').status, 503);
  const std::string filler = Open({{"prompt", Json(std::vector<int>(190, 'e'))}});
  ExpectError(Post(At(small, "/append"), {{"prompt", Json(std::vector<int>(180, 'f'))}}), 503,
              nullptr, "unavailable");
  EXPECT_EQ(Tokens(small), before);
  EXPECT_EQ(Delete(At(filler)).status, 200);
  EXPECT_EQ(Post(At(small, "/append"), {{"prompt", Json(std::vector<int>(180, 'f'))}}).status, 200);
  EXPECT_EQ(Tokens(small).size(), before.size() + 180);
}

TEST_F(SessionsTest, WhatIsWrongIsSaidWithItsField) {
  Start({});
  const auto wrong = [&](const Json& request, const char* param) {
    ExpectError(Post("/v1/sessions", request), 400, param, nullptr);
  };
  constexpr char kMissing[] = "missing_required_parameter";
  ExpectError(Post("/v1/sessions", Json::object()), 400, "prompt", kMissing);
  wrong({{"prompt", 5}}, "prompt");
  wrong({{"prompt", {"a", "b"}}}, "prompt");
  wrong({{"prompt", ""}}, "prompt");
  wrong({{"prompt", "a"}, {"messages", Json::array()}}, "prompt");
  wrong({{"messages", "hi"}}, "messages");
  wrong({{"prompt", "a"}, {"temperature", -1}}, "temperature");
  wrong({{"prompt", "a"}, {"n", 2}}, "n");
  wrong({{"prompt", "a"}, {"grammar", "root ::= ("}}, "grammar");
  ExpectError(Post("/v1/sessions", {{"prompt", std::string(3000, 'c')}}), 400, "prompt",
              "context_length_exceeded");
  EXPECT_EQ(Metric("trine_sessions"), 0);
  const std::string id = Open({{"prompt", "a"}});
  const auto used = [&](const char* what, const Json& request, const Json& param) {
    ExpectError(Post(At(id, what), request), 400, param, nullptr);
  };
  ExpectError(Post(At(id, "/append"), Json::object()), 400, "prompt", kMissing);
  used("/append", {{"prompt", {"a", "b"}}}, "prompt");
  used("/append", {{"prompt", {1, 999999}}}, "prompt");
  used("/append", {{"prompt", ""}}, "prompt");
  used("/generate", {{"max_tokens", "many"}}, "max_tokens");
  used("/generate", {{"temperature", 1}}, "temperature");
  used("/generate", {{"prompt", "x"}}, "prompt");
  used("/generate", {{"n", 2}}, "n");
  used("/generate", {{"logprobs", 21}}, "logprobs");
  ExpectError(Post(At(id, "/regress"), Json::object()), 400, "t", kMissing);
  used("/regress", {{"t", "0"}}, "t");
  used("/regress", {{"t", -1}}, "t");
  used("/fork", {{"n", 0}}, "n");
  used("/fork", {{"seed", "s"}}, "seed");
  ExpectError(Post(At(id, "/append"), {{"prompt", std::string(3000, 'c')}}), 400, "prompt",
              "context_length_exceeded");
  ExpectError(Delete(At(id, "/checkpoints/x")), 400, "t", nullptr);
  ExpectError(Delete(At(id, "/checkpoints/0")), 404, "t", "checkpoint_not_found");
  ExpectError(Get(At(id, "?text=maybe")), 400, "text", nullptr);
  ExpectError(Get(At("sess-none")), 404, nullptr, "session_not_found");
  ExpectError(Post(At(id, "/nothing"), Json::object()), 404, nullptr, nullptr);
  ExpectError(Get(At(id, "/fork")), 405, nullptr, nullptr);
  EXPECT_EQ(Delete("/v1/sessions").Header("Allow"), "GET, POST");
  for (int i = 0; i < 64; ++i) Use(id, "/checkpoint");
  ExpectError(Post(At(id, "/checkpoint"), Json::object()), 400, nullptr, "too_many_checkpoints");
  // None of it did any harm or blocks the session.
  EXPECT_EQ(Generate(id, 8), Completion({{"prompt", "a"}, {"max_tokens", 8}}));
}

TEST_F(SessionsTest, AFullContextIsSaid) {
  Start({.context = 64});
  const std::string id = Open({{"prompt", "a"}, {"ignore_eos", true}});
  const Json json = Use(id, "/generate");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(Body(Get(At(id)))["tokens"], 64);
  ExpectError(Post(At(id, "/generate"), Json::object()), 400, nullptr, "context_length_exceeded");
}

TEST_F(SessionsTest, ALostDeviceCostsNoSessionAToken) {
  const auto texts = [&] {
    std::vector<std::string> texts;
    const std::string id = Open({{"prompt", "a long way"}, {"ignore_eos", true}});
    const Json t = Use(id, "/checkpoint")["t"];
    const std::vector<std::string> forks = Fork(id, {{"n", 3}});
    for (int round = 0; round < 3; ++round) {
      for (const std::string& fork : forks) texts.push_back(Generate(fork, 8));
    }
    texts.push_back(Generate(id, 20));
    Use(id, "/regress", {{"t", t}});
    texts.push_back(Generate(id, 20));
    return texts;
  };
  Start({.places = 4});
  const std::vector<std::string> calm = texts();
  server_.reset();
  Start({.places = 4, .split = "cpu:1,several0:2", .faults = "several0:lost@token=45"});
  EXPECT_EQ(texts(), calm);
  EXPECT_EQ(Body(Get("/health"))["status"], "degraded");
}

// All sessions are active when the device is lost: one reads a prompt, and one is not yet open.
TEST_F(SessionsTest, ALostDeviceUnderManySessionsCostsNoneAToken) {
  constexpr int kSessions = 5;
  const auto texts = [&] {
    std::vector<std::string> ids, texts(kSessions + 2);
    for (int i = 0; i < kSessions; ++i) {
      ids.push_back(Open({{"prompt", absl::StrCat("way ", i, std::string(40 * i, 'x'))},
                          {"temperature", i % 2 == 0 ? 0.0 : 1.2},
                          {"seed", 5 + i},
                          {"ignore_eos", true}}));
    }
    const std::string reader = Open({{"prompt", "reads"}, {"ignore_eos", true}});
    std::vector<std::thread> threads;
    for (int i = 0; i < kSessions; ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < 3; ++round) texts[i] += Generate(ids[i], 16);
      });
    }
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) {
        Use(reader, "/append", {{"prompt", std::string(60, 'a' + round)}});
        texts[kSessions] += Generate(reader, 4);
      }
    });
    threads.emplace_back([&] {
      const std::string late = Open({{"prompt", std::string(70, 'z')}, {"ignore_eos", true}});
      texts[kSessions + 1] = Generate(late, 16);
      texts[kSessions + 1] += Generate(Fork(late, Json::object())[0], 16);
    });
    for (std::thread& t : threads) t.join();
    for (const std::string& id : ids) texts.push_back(Tokens(id).dump());
    return texts;
  };
  Start({.places = 8});
  const std::vector<std::string> calm = texts();
  for (const int token : {5, 15, 30}) {  // passes without prompt tokens
    server_.reset();
    Start({.places = 8,
           .split = "cpu:1,several0:2",
           .faults = absl::StrCat("several0:lost@token=", token)});
    EXPECT_EQ(texts(), calm) << token;
    EXPECT_EQ(Body(Get("/health"))["status"], "degraded") << token;
  }
}

TEST_F(SessionsTest, AtTheEndWhatRunsIsToldOfIt) {
  Start({.context = 4096});
  const std::string id = Open({{"prompt", "on"}, {"ignore_eos", true}});
  RawClient client(server_->port());
  client.Send(Text("POST", At(id, "/generate"), Json{{"stream", true}}.dump()));
  ASSERT_TRUE(Becomes([&] { return Status()["tokens"]["generated"] > 0; }));
  server_->Shutdown(milliseconds(1));
  EXPECT_THAT(client.Read().body, HasSubstr("the server is stopping"));
}

TEST_F(SessionsTest, KeptBlocksAreCounted) {
  Start({.kv_host_bytes = 64 << 20});
  Completion({{"prompt", std::string(200, 'k')}, {"max_tokens", 2}});
  EXPECT_TRUE(Becomes([&] {
    return absl::StrContains(Get("/metrics").body,
                             "trine_kv_store_writes_total{store=\"host\"} 3\n");
  })) << Get("/metrics").body;
  const std::string text = Get("/metrics").body;
  for (const char* name :
       {"trine_kv_store_blocks{store=\"disk\"} 0\n", "trine_kv_store_found_blocks_total ",
        "trine_kv_store_fetch_seconds_total ", "trine_sessions 0\n",
        "trine_session_checkpoints_total 0\n"}) {
    EXPECT_THAT(text, HasSubstr(name));
  }
}

}  // namespace
}  // namespace trine::server
