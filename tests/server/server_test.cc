// Tests the server as clients see it: answers, refusals, and who gets a place.
#include <algorithm>
#include <chrono>
#include <filesystem>
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

TEST_F(ServerTest, AStreamIsTheSameAnswerInPieces) {
  Start({});
  Json request = {{"messages", {{{"role", "user"}, {"content", "hello there"}}}},
                  {"max_tokens", 24}};
  const Json whole = Body(Post("/v1/chat/completions", request));
  const std::string text = whole["choices"][0]["message"]["content"];
  EXPECT_EQ(whole["usage"]["completion_tokens"], 24);
  request["stream"] = true;
  request["stream_options"] = {{"include_usage", true}};
  const RawAnswer answer = Post("/v1/chat/completions", request);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("Content-Type"), "text/event-stream");
  EXPECT_TRUE(absl::EndsWith(answer.body, "data: [DONE]\n\n")) << answer.body;
  const std::vector<Json> frames = Frames(answer.body);
  ASSERT_GT(frames.size(), 3u);
  EXPECT_EQ(frames[0]["choices"][0]["delta"]["role"], "assistant");
  std::string joined;
  std::set<std::string> ids;
  for (const Json& frame : frames) {
    ids.insert(frame["id"].get<std::string>());
    if (frame["choices"].empty()) continue;
    joined += frame["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(joined, text);
  EXPECT_EQ(ids.size(), 1u);
  EXPECT_EQ(frames.back()["usage"], whole["usage"]);
  EXPECT_EQ(frames[frames.size() - 2]["choices"][0]["finish_reason"], "length");
}

TEST_F(ServerTest, AloneOrAmongManyTheAnswerIsTheSame) {
  Start({.places = 32});
  const auto request = [](int i) -> Json {
    return {{"prompt", absl::StrCat("a tale of ", i, " foxes ", std::string(i % 7, 'x'))},
            {"ignore_eos", true},
            {"max_tokens", 150 + i % 5}};  // so long that all begin before the first ends
  };
  constexpr int kClients = 32;
  std::vector<std::string> alone(kClients), together(kClients);
  for (int i = 0; i < kClients; ++i) alone[i] = Completion(request(i));
  // They shared passes, unless the machine let some begin only after others had ended.
  int64_t most = 0;
  for (int round = 1; round <= 5 && most <= 8; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kClients; ++i) {
      threads.emplace_back([&, i] { together[i] = Completion(request(i)); });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(together, alone);
    const Json status = Status();
    EXPECT_EQ(status["requests"]["completed"], (1 + round) * kClients);
    for (const Json& event : status["timeline"]["events"]) {
      most = std::max(most, event["sequences"].get<int64_t>());
    }
  }
  EXPECT_GT(most, 8);
}

TEST_F(ServerTest, ChoicesShareAPromptAndDifferBySeed) {
  Start({});
  const std::string prompt(150, 'a');
  const Json one = Body(Post("/v1/completions", {{"prompt", prompt},
                                                 {"max_tokens", 12},
                                                 {"temperature", 1.5},
                                                 {"seed", 7},
                                                 {"n", 6},
                                                 {"ignore_eos", true}}));
  ASSERT_EQ(one["choices"].size(), 6u) << one;
  std::set<std::string> texts;
  for (const Json& choice : one["choices"]) texts.insert(choice["text"].get<std::string>());
  EXPECT_GT(texts.size(), 1u);
  EXPECT_EQ(one["usage"]["completion_tokens"], 72);
  const Json again = Body(Post("/v1/completions", {{"prompt", prompt},
                                                   {"max_tokens", 12},
                                                   {"temperature", 1.5},
                                                   {"seed", 7},
                                                   {"n", 6},
                                                   {"ignore_eos", true}}));
  EXPECT_EQ(again["choices"], one["choices"]);
  EXPECT_GT(again["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
}

TEST_F(ServerTest, TheTokenThatCameIsAmongTheBestThatAreTold) {
  Start({});
  // At this temperature most tokens are not among the best two.
  const Json request = {{"prompt", "once"}, {"max_tokens", 20}, {"temperature", 50},
                        {"seed", 3},        {"logprobs", 2},    {"ignore_eos", true},
                        {"top_k", 0},       {"top_p", 1},       {"min_p", 0}};
  const Json told = Body(Post("/v1/completions", request))["choices"][0]["logprobs"];
  ASSERT_GT(told["tokens"].size(), 10u) << told;
  int others = 0;
  for (size_t i = 0; i < told["tokens"].size(); ++i) {
    const Json& top = told["top_logprobs"][i];
    ASSERT_TRUE(top.contains(told["tokens"][i].get<std::string>())) << told;
    EXPECT_LE(top.size(), 3u);
    others += top.size() == 3 ? 1 : 0;
  }
  EXPECT_GT(others, 0);
}

// Harnesses score a text by its own tokens, with or without a token that follows.
TEST_F(ServerTest, AnEchoTellsOfThePromptsTokens) {
  Start({});
  const Json prompt =
      Body(Post("/tokenize", {{"content", "a fox came by, and a fox went"}}))["tokens"];
  ASSERT_GT(prompt.size(), 4u);
  const auto ask = [&](Json request) {
    request["logprobs"] = 2;
    request["echo"] = true;
    return Body(Post("/v1/completions", request));
  };
  const Json scored = ask({{"prompt", prompt}, {"max_tokens", 0}});
  const Json told = scored["choices"][0]["logprobs"];
  ASSERT_EQ(told["tokens"].size(), prompt.size()) << scored;
  EXPECT_TRUE(told["token_logprobs"][0].is_null());
  EXPECT_TRUE(told["top_logprobs"][0].is_null());
  EXPECT_EQ(scored["usage"]["completion_tokens"], 0);
  EXPECT_EQ(scored["choices"][0]["finish_reason"], "length");
  // Each value equals that of generating this token after the same beginning.
  for (const size_t at : {size_t{2}, prompt.size() - 1}) {
    const Json beginning(prompt.begin(), prompt.begin() + static_cast<int>(at));
    const Json next = Body(Post("/v1/completions", {{"prompt", beginning},
                                                    {"max_tokens", 1},
                                                    {"logprobs", 2},
                                                    {"logit_bias", {{prompt[at].dump(), 1000}}}}));
    EXPECT_EQ(next["choices"][0]["logprobs"]["token_logprobs"][0], told["token_logprobs"][at]);
  }
  // With a token that follows; several prompts and choices; streamed.
  const Json one = ask({{"prompt", {prompt, prompt}}, {"max_tokens", 1}, {"n", 2}});
  ASSERT_EQ(one["choices"].size(), 4u) << one;
  for (const Json& choice : one["choices"]) {
    const Json& logprobs = choice["logprobs"];
    ASSERT_EQ(logprobs["tokens"].size(), prompt.size() + 1) << one;
    for (size_t i = 0; i < prompt.size(); ++i) {
      EXPECT_EQ(logprobs["token_logprobs"][i], told["token_logprobs"][i]);
    }
  }
  const RawAnswer streamed = Post(
      "/v1/completions",
      {{"prompt", prompt}, {"max_tokens", 1}, {"logprobs", 2}, {"echo", true}, {"stream", true}});
  size_t tokens = 0;
  for (const Json& frame : Frames(streamed.body)) {
    const Json& logprobs = frame["choices"][0]["logprobs"];
    if (logprobs.is_object()) tokens += logprobs["tokens"].size();
  }
  EXPECT_EQ(tokens, prompt.size() + 1);
}

TEST_F(ServerTest, NobodySeesWhatAnotherKeyHasRead) {
  Start({.keys = {"one", "two"}});
  const Json request = {{"prompt", std::string(150, 'b')}, {"max_tokens", 2}};
  const auto cached = [&](const char* key) {
    const Json json =
        Body(Post("/v1/completions", request, absl::StrCat("Authorization: Bearer ", key, "\r\n")));
    return json["usage"]["prompt_tokens_details"].value("cached_tokens", -1);
  };
  EXPECT_EQ(cached("one"), 0);
  EXPECT_GT(cached("one"), 0);
  EXPECT_EQ(cached("two"), 0);
  EXPECT_EQ(Post("/v1/completions", request).status, 401);
  EXPECT_EQ(Get("/v1/models").status, 401);
  EXPECT_EQ(Get("/metrics").status, 401);
  EXPECT_EQ(Get("/health").status, 200);
  EXPECT_EQ(Get("/").status, 200);
  EXPECT_EQ(Get("/nothing").status, 401);  // whether a path exists needs a key, too
}

TEST_F(ServerTest, WhatIsWrongIsSaidInTheApisShape) {
  Start({});
  const auto expect = [&](const RawAnswer& answer, int status, const Json& param) {
    EXPECT_EQ(answer.status, status) << answer.body;
    const Json json = Body(answer);
    ASSERT_TRUE(json.is_object() && json.contains("error")) << answer.body;
    EXPECT_TRUE(json["error"]["message"].is_string());
    EXPECT_EQ(json["error"]["param"], param) << answer.body;
  };
  expect(Post("/v1/completions", {{"prompt", 5}}), 400, "prompt");
  expect(Post("/v1/chat/completions", {{"messages", "hi"}}), 400, "messages");
  expect(Post("/v1/completions", {{"prompt", "a"}, {"temperature", -1}}), 400, "temperature");
  expect(Post("/v1/completions", {{"prompt", std::string(3000, 'c')}}), 400, "prompt");
  expect(Post("/v1/embeddings", {{"input", ""}}), 400, "input");
  expect(Post("/v1/completions", {{"prompt", "a"}, {"grammar", "root ::= ("}}), 400, "grammar");
  expect(Get("/v1/nothing"), 404, nullptr);
  expect(Get("/v1/completions"), 405, nullptr);
  expect(Get("/v1/models/other"), 404, "model");
  EXPECT_EQ(Body(Get("/v1/models/other"))["error"]["code"], "model_not_found");
  expect(Post("/v1/completions", {{"prompt", {"a", std::string(3000, 'c')}}}), 400, "prompt[1]");
  expect(RawClient(server_->port()).Ask(Text("POST", "/v1/completions", "{\"prompt\": ")), 400,
         nullptr);
  EXPECT_EQ(Post("/v1/completions", {{"prompt", std::string(3000, 'c')}, {"stream", true}}).status,
            400);
  EXPECT_EQ(Get("/v1/models", "Origin: https://example.org\r\n").status, 403);
}

TEST_F(ServerTest, WhatIsSwitchedOffIsNotThere) {
  Start({.embeddings = false, .trace = false});
  const RawAnswer embeddings = Post("/v1/embeddings", {{"input", "a"}}), trace = Get("/v1/trace");
  for (const RawAnswer& answer : {embeddings, trace}) {
    EXPECT_EQ(answer.status, 404) << answer.body;
    EXPECT_EQ(Body(answer)["error"]["code"], "switched_off") << answer.body;
  }
}

TEST_F(ServerTest, EveryAnswerHasAName) {
  Start({.keys = {"one"}});
  // Refused by the HTTP server itself: too large, not HTTP, no key for a body yet to come.
  const std::string large =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer one\r\n"
      "Content-Length: 99999999\r\n\r\n";
  const RawAnswer answers[] = {RawClient(server_->port()).Ask(large),
                               RawClient(server_->port()).Ask("nonsense\r\n\r\n"),
                               Post("/v1/completions", {{"prompt", "a"}}), Get("/health")};
  const int kStatus[] = {413, 400, 401, 200};
  std::set<std::string> names;
  for (size_t i = 0; i < std::size(answers); ++i) {
    EXPECT_EQ(answers[i].status, kStatus[i]) << answers[i].body;
    EXPECT_TRUE(absl::StartsWith(answers[i].Header("X-Request-Id"), "req_")) << i;
    names.insert(std::string(answers[i].Header("X-Request-Id")));
  }
  EXPECT_EQ(names.size(), std::size(answers));
}

TEST_F(ServerTest, TheModelGoesByItsFilesName) {
  Start({.alias = ""});
  const std::string file = std::filesystem::path(file_.path()).filename().string();
  const std::string name = absl::EndsWith(file, ".gguf") ? file.substr(0, file.size() - 5) : file;
  EXPECT_EQ(Body(Get("/v1/models"))["data"][0]["id"], name);
  for (const std::string& asked : {name, name + ".gguf"}) {
    EXPECT_EQ(Body(Get("/v1/models/" + asked))["id"], name);
  }
  for (const std::string& asked : {name, name + ".gguf", std::string("any"), std::string()}) {
    EXPECT_EQ(
        Post("/v1/completions", {{"prompt", "a"}, {"max_tokens", 1}, {"model", asked}}).status,
        200);
  }
  server_.reset();
  Start({.alias = "my.model"});
  EXPECT_EQ(Body(Get("/v1/models"))["data"][0]["id"], "my.model");
  for (const std::string& asked : {name, name + ".gguf", std::string("my.model")}) {
    EXPECT_EQ(Body(Get("/v1/models/" + asked))["id"], "my.model");
  }
  EXPECT_EQ(Get("/v1/models/my").status, 404);
}

TEST_F(ServerTest, ConstrainedAnswersParse) {
  Start({});
  const Json schema = {{"type", "object"},
                       {"properties", {{"name", {{"type", "string"}, {"maxLength", 8}}}}},
                       {"required", {"name"}},
                       {"additionalProperties", false}};
  const Json chat = Body(
      Post("/v1/chat/completions",
           {{"messages", {{{"role", "user"}, {"content", "a name"}}}},
            {"max_tokens", 60},
            {"response_format",
             {{"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"schema", schema}}}}}}));
  const Json answer =
      Json::parse(chat["choices"][0]["message"]["content"].get<std::string>(), nullptr, false);
  EXPECT_TRUE(answer.is_object() && answer["name"].is_string()) << chat;
  const Json call = Body(Post(
      "/v1/chat/completions",
      {{"messages", {{{"role", "user"}, {"content", "call it"}}}},
       {"max_tokens", 100},
       {"tool_choice", "required"},
       {"tools",
        {{{"type", "function"}, {"function", {{"name", "set_name"}, {"parameters", schema}}}}}}}));
  const Json& message = call["choices"][0]["message"];
  ASSERT_EQ(message["tool_calls"].size(), 1u) << call;
  EXPECT_EQ(call["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_EQ(message["tool_calls"][0]["function"]["name"], "set_name");
  EXPECT_TRUE(Json::parse(message["tool_calls"][0]["function"]["arguments"].get<std::string>(),
                          nullptr, false)
                  .contains("name"));
}

TEST_F(ServerTest, EmbeddingsBesideGeneration) {
  Start({});
  const Json request = {{"input", {"one text", "another"}}, {"encoding_format", "float"}};
  const Json alone = Body(Post("/v1/embeddings", request));
  ASSERT_EQ(alone["data"].size(), 2u) << alone;
  std::thread writer([&] { Completion({{"prompt", "meanwhile"}, {"max_tokens", 100}}); });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Body(Post("/v1/embeddings", request)), alone);
  writer.join();
}

TEST_F(ServerTest, WhoLeavesIsNotAnsweredAndMakesRoom) {
  Start({.places = 1, .context = 4096});
  for (const bool stream : {false, true}) {
    const Json before = Status()["requests"];
    RawClient client(server_->port()), waits(server_->port());
    const Json request = {{"prompt", "on and on"}, {"ignore_eos", true}, {"stream", stream}};
    client.Send(Text("POST", "/v1/completions", request.dump()));
    ASSERT_TRUE(Becomes([&] { return Status()["requests"]["running"] == 1; }));
    waits.Send(Text("POST", "/v1/completions", request.dump()));
    ASSERT_TRUE(Becomes([&] { return Status()["requests"]["queued"] == 1; }));
    waits.Close();
    EXPECT_TRUE(Becomes([&] { return Status()["requests"]["queued"] == 0; }));
    const auto left = std::chrono::steady_clock::now();
    client.Reset();
    EXPECT_TRUE(Becomes([&] { return Status()["requests"]["running"] == 0; }));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - left;
    std::printf("a client that left was gone after %.0f ms\n", took.count());
    EXPECT_EQ(Status()["requests"]["cancelled"], before["cancelled"].get<int>() + 2);
  }
  const Json kv = Status()["kv"];
  EXPECT_EQ(kv["free"].get<int>() + kv["shared"].get<int>(), kv["blocks"].get<int>());
}

TEST_F(ServerTest, TooManyAreToldToComeAgain) {
  Start({.places = 1, .context = 4096, .queue = {.waiting = 1}});
  const std::string request =
      Text("POST", "/v1/completions", Json{{"prompt", "on"}, {"ignore_eos", true}}.dump());
  RawClient runs(server_->port()), waits(server_->port()), one_too_many(server_->port());
  runs.Send(request);
  ASSERT_TRUE(Becomes([&] { return Status()["requests"]["running"] == 1; }));
  waits.Send(request);
  ASSERT_TRUE(Becomes([&] { return Status()["requests"]["queued"] == 1; }));
  const RawAnswer answer = one_too_many.Ask(request);
  EXPECT_EQ(answer.status, 429);
  EXPECT_NE(answer.Header("Retry-After"), "");
}

TEST_F(ServerTest, AnAnswerMayTakeOnlySoLong) {
  Start({.places = 1, .context = 100'000, .request_time = std::chrono::seconds(1)});
  const Json request = {{"prompt", "on"}, {"ignore_eos", true}, {"max_tokens", 90'000}};
  EXPECT_EQ(Post("/v1/completions", request).status, 504);
  Json streamed = request;
  streamed["stream"] = true;
  const RawAnswer answer = Post("/v1/completions", streamed);
  EXPECT_EQ(answer.status, 200);
  const std::vector<Json> frames = Frames(answer.body);
  ASSERT_FALSE(frames.empty());
  EXPECT_THAT(frames.back()["error"]["message"].get<std::string>(), HasSubstr("1 s"));
}

TEST_F(ServerTest, WhileItIsLoadedClientsAreToldToWait) {
  std::promise<void> go;
  Start({.hold = go.get_future().share()});
  const RawAnswer answer = Post("/v1/completions", {{"prompt", "a"}});
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.Header("Retry-After"), "");
  EXPECT_EQ(Get("/health").status, 503);
  EXPECT_EQ(Body(Get("/health"))["status"], "loading");
  EXPECT_EQ(Status()["state"], "loading");
  EXPECT_EQ(Get("/").status, 200);
  go.set_value();
  EXPECT_TRUE(Becomes([&] { return Get("/health").status == 200; }));
  EXPECT_EQ(Completion({{"prompt", "a"}, {"max_tokens", 1}}).empty(), false);
}

TEST_F(ServerTest, AtTheEndWhatRunsIsFinishedOrToldOfIt) {
  for (const bool patient : {true, false}) {
    Start({.places = 1, .context = 4096});
    RawClient runs(server_->port()), waits(server_->port());
    runs.Send(Text("POST", "/v1/completions",
                   Json{{"prompt", "on"},
                        {"ignore_eos", true},
                        {"max_tokens", patient ? 200 : 4000},
                        {"stream", true}}
                       .dump()));
    ASSERT_TRUE(Becomes([&] { return Status()["tokens"]["generated"] > 0; }));
    server_->Shutdown(patient ? milliseconds(60'000) : milliseconds(1));
    const RawAnswer answer = runs.Read();
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.complete);
    EXPECT_EQ(absl::StrContains(answer.body, "[DONE]"), patient)
        << answer.body.substr(answer.body.size() < 300 ? 0 : answer.body.size() - 300);
    EXPECT_EQ(absl::StrContains(answer.body, "the server is stopping"), !patient);
    server_.reset();
  }
}

}  // namespace
}  // namespace trine::server
