// Tests requests that wait: blocks of their prompts on disk are in memory when their turn comes.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/server/server_fixture.h"

namespace trine::server {
namespace {

using ::testing::HasSubstr;

class ServerPrefetchTest : public ServerTest {
 protected:
  ServerPrefetchTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "trine-kv-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~ServerPrefetchTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  // Starts a server with one place and an empty cache.
  void StartAgain(std::vector<std::string> keys = {}, uint64_t prefetch_bytes = 64 << 20) {
    server_.reset();
    Start({.places = 1,
           .context = 16384,  // long enough to keep the place taken
           .keys = std::move(keys),
           .kv_store = folder_,
           .kv_prefetch_bytes = prefetch_bytes});
  }
  // Takes the place until the client is reset.
  std::unique_ptr<RawClient> TakePlace() {
    auto client = std::make_unique<RawClient>(server_->port());
    const Json endless = {{"prompt", "on"}, {"stream", true}, {"ignore_eos", true}};
    client->Send(Text("POST", "/v1/completions", endless.dump()));
    EXPECT_TRUE(Becomes([&] { return Metric("trine_generated_tokens_total") > 0; }));
    return client;
  }
  double DiskHits() const { return Metric("trine_kv_store_hits_total{store=\"disk\"}"); }

  const Json request_ = {
      {"prompt", std::string(500, 'p')}, {"max_tokens", 6}, {"ignore_eos", true}};
  std::string folder_;
};

TEST_F(ServerPrefetchTest, ARequestThatWaitsIsReadyForItsTurn) {
  StartAgain();
  const std::string text = Completion(request_);
  for (const bool session : {false, true}) {
    StartAgain();
    const auto busy = TakePlace();
    RawClient waiting(server_->port());
    Json request = request_;
    if (session) request.erase("max_tokens");
    waiting.Send(Text("POST", session ? "/v1/sessions" : "/v1/completions", request.dump()));
    // Everything is prefetched while another request has the place.
    ASSERT_TRUE(Becomes([&] { return Metric("trine_kv_prefetch_done_total") == 1; }));
    EXPECT_EQ(Metric("trine_kv_prefetch_blocks_total"), 7);
    EXPECT_EQ(Metric("trine_requests_waiting"), 1);
    EXPECT_EQ(Metric("trine_places_taken"), 1);
    EXPECT_GT(Metric("trine_kv_prefetch_bytes"), 0);
    EXPECT_EQ(Metric("trine_kv_prefetch_used_blocks_total"), 0);
    EXPECT_EQ(Metric("trine_kv_store_found_blocks_total"), 0);
    EXPECT_THAT(Get("/v1/trace").body, HasSubstr("\"prefetch\""));
    const double hits = DiskHits();
    EXPECT_EQ(hits, 7);
    busy->Reset();
    const RawAnswer answer = waiting.Read();
    ASSERT_EQ(answer.status, 200) << answer.body;
    // The disk is not asked again.
    EXPECT_EQ(DiskHits(), hits);
    EXPECT_EQ(Metric("trine_kv_prefetch_used_blocks_total"), 7);
    EXPECT_EQ(Metric("trine_kv_store_found_blocks_total"), 7);
    EXPECT_EQ(Metric("trine_kv_prefetch_cut_total"), 0);
    EXPECT_TRUE(Becomes([&] { return Metric("trine_kv_prefetch_bytes") == 0; }));
    const Json json = Body(answer);
    if (session) {
      const Json more =
          Body(Post(absl::StrCat("/v1/sessions/", json["id"].get<std::string>(), "/generate"),
                    {{"max_tokens", 6}}));
      EXPECT_EQ(more["choices"][0]["text"], text);
    } else {
      EXPECT_EQ(json["choices"][0]["text"], text);
      EXPECT_EQ(json["usage"]["prompt_tokens_details"]["cached_tokens"], 448);
    }
  }
}

TEST_F(ServerPrefetchTest, WhoLeavesTheQueueLeavesNothing) {
  StartAgain();
  const std::string text = Completion(request_);
  StartAgain();
  const auto busy = TakePlace();
  for (int i = 0; i < 5; ++i) {
    RawClient waiting(server_->port());
    waiting.Send(Text("POST", "/v1/completions", request_.dump()));
    if (i % 2 == 0) {
      ASSERT_TRUE(Becomes([&] { return Metric("trine_kv_prefetch_bytes") > 0; }));
    }
    waiting.Reset();
    ASSERT_TRUE(Becomes([&] { return Metric("trine_requests_waiting") == 0; }));
    ASSERT_TRUE(Becomes([&] { return Metric("trine_kv_prefetch_bytes") == 0; }));
  }
  EXPECT_EQ(Metric("trine_kv_prefetch_used_blocks_total"), 0);
  busy->Reset();
  EXPECT_EQ(Completion(request_), text);
}

// Several requests wait for the same blocks, one is wrong, and one has another key.
TEST_F(ServerPrefetchTest, ManyThatWait) {
  const auto key = [](const char* name) {
    return absl::StrCat("Authorization: Bearer ", name, "\r\n");
  };
  StartAgain({"one", "two"});
  const Json asked = Body(Post("/v1/completions", request_, key("one")));
  int own = 0;
  for (const uint64_t bytes : {uint64_t{64} << 20, uint64_t{24} << 10, uint64_t{0}}) {
    StartAgain({"one", "two"}, bytes);
    RawClient busy(server_->port());
    const Json endless = {{"prompt", "on"}, {"stream", true}, {"ignore_eos", true}};
    busy.Send(Text("POST", "/v1/completions", endless.dump(), key("one")));
    ASSERT_FALSE(busy.ReadSome(200).empty());
    std::vector<std::unique_ptr<RawClient>> waiting;
    const auto ask = [&](const Json& request, const char* name) {
      waiting.push_back(std::make_unique<RawClient>(server_->port()));
      waiting.back()->Send(Text("POST", "/v1/completions", request.dump(), key(name)));
    };
    Json wrong = request_, long_one = request_;
    wrong["grammar"] = "root ::= (";
    wrong["ignore_eos"] = false;
    long_one["prompt"] = std::string(20000, 'q');
    for (int i = 0; i < 3; ++i) ask(request_, "one");
    ask(wrong, "one");
    ask(long_one, "one");
    ask(request_, "two");
    ASSERT_TRUE(
        Becomes([&] { return Body(Get("/health"))["requests"]["queued"] == waiting.size(); }));
    busy.Reset();
    std::vector<RawAnswer> answers;
    for (const auto& client : waiting) answers.push_back(client->Read());
    for (const size_t i : {0, 1, 2, 5}) {
      ASSERT_EQ(answers[i].status, 200) << answers[i].body;
      EXPECT_EQ(Body(answers[i])["choices"][0]["text"], asked["choices"][0]["text"]) << bytes;
    }
    // At first another key finds nothing; later it finds what it has read itself.
    EXPECT_EQ(Body(answers[5])["usage"]["prompt_tokens_details"]["cached_tokens"], own);
    own = 448;
    EXPECT_EQ(Body(answers[3])["error"]["param"], "grammar") << answers[3].body;
    EXPECT_EQ(Body(answers[4])["error"]["code"], "context_length_exceeded") << answers[4].body;
  }
}

}  // namespace
}  // namespace trine::server
