// Tests libtrine as a host program uses it, through the C header alone: its purpose, and everything
// a host can do wrong. No call may end the process.
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/c_api_codes.h"
#include "tests/model/temp_file.h"
#include "tests/model/tiny_model.h"
#include "trine/trine.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

trine_failure Failure() {
  trine_failure why{};
  why.struct_size = sizeof(why);
  return why;
}

trine_engine_options Options(const std::string& model) {
  trine_engine_options options{};
  options.struct_size = sizeof(options);
  options.model = model.c_str();
  options.context = 256;
  return options;
}

class CApiModelTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = std::make_unique<TempFile>(MakeTinyModel(*TinyModelByName("qwen2")).ToBytes());
    trine_failure why = Failure();
    trine_engine_options options = Options(file_->path());
    options.max_sequences = 3;
    ASSERT_EQ(trine_engine_open(&options, &engine_, &why), 0) << why.message;
  }
  void TearDown() override { trine_engine_close(engine_); }

  trine_session* Open(uint32_t flags = TRINE_SESSION_IGNORE_END) {
    trine_sampler_options sampler;
    trine_sampler_options_init(&sampler, sizeof(sampler));
    trine_session_options options{};
    options.struct_size = sizeof(options);
    options.flags = flags;
    options.sampler = &sampler;
    trine_session* session = nullptr;
    trine_failure why = Failure();
    EXPECT_EQ(trine_session_open(engine_, &options, &session, &why), 0) << why.message;
    return session;
  }
  static int32_t Append(trine_session* session, const char* text) {
    return trine_session_append_text(session, text, std::strlen(text), 0, nullptr);
  }

  std::unique_ptr<TempFile> file_;
  trine_engine* engine_ = nullptr;
};

TEST_F(CApiModelTest, DescribesTheEngine) {
  trine_engine_info info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(trine_engine_describe(engine_, &info), 0);
  EXPECT_STREQ(info.architecture, "qwen2");
  EXPECT_EQ(info.n_layers, 3);
  EXPECT_EQ(info.n_vocab, TinyVocabularySize());
  EXPECT_EQ(info.context, 256);
  EXPECT_GT(info.weight_bytes, 0u);
  EXPECT_GT(info.kv_bytes, 0u);
  // An older caller's struct ends early.
  trine_engine_info older{};
  older.struct_size = offsetof(trine_engine_info, n_layers);
  older.n_layers = 77;
  ASSERT_EQ(trine_engine_describe(engine_, &older), 0);
  EXPECT_EQ(older.n_vocab, TinyVocabularySize());
  EXPECT_EQ(older.n_layers, 77);
}

TEST_F(CApiModelTest, GeneratesThroughCallbacks) {
  struct Seen {
    std::string text;
    int64_t prompt_done = 0;
  } seen;
  trine_session* session = Open(TRINE_SESSION_IGNORE_END | TRINE_SESSION_LOGITS_HASH);
  ASSERT_EQ(Append(session, "the end"), 0);
  trine_generate_options options{};
  options.struct_size = sizeof(options);
  options.max_tokens = 20;
  options.user = &seen;
  options.on_text = [](void* user, const char* text, size_t bytes) -> int32_t {
    static_cast<Seen*>(user)->text.append(text, bytes);
    return 0;
  };
  options.on_prompt = [](void* user, int64_t done, int64_t) {
    static_cast<Seen*>(user)->prompt_done = done;
  };
  trine_generate_result result{};
  result.struct_size = sizeof(result);
  trine_failure why = Failure();
  ASSERT_EQ(trine_generate(session, &options, &result, &why), 0) << why.message;
  EXPECT_EQ(result.finish, static_cast<uint32_t>(TRINE_FINISH_LENGTH));
  EXPECT_EQ(result.generated_tokens, 20);
  EXPECT_EQ(seen.prompt_done, result.prompt_tokens);
  EXPECT_FALSE(seen.text.empty());
  char hash[32];
  EXPECT_EQ(trine_session_logits_hash(session, hash, sizeof(hash)), 0);
  EXPECT_EQ(std::strlen(hash), 18u);
  EXPECT_EQ(trine_session_logits_hash(session, hash, 5), kOutOfRange);
  // The tokens spell the text.
  size_t count = 0;
  trine_session_tokens(session, nullptr, 0, &count);
  std::vector<int32_t> tokens(count);
  ASSERT_EQ(trine_session_tokens(session, tokens.data(), tokens.size(), &count), 0);
  EXPECT_EQ(static_cast<int64_t>(count), result.prompt_tokens + 20);
  trine_session_close(session);
}

TEST_F(CApiModelTest, StepByStepIsTheSameAsGenerate) {
  trine_session* whole = Open();
  trine_session* steps = Open();
  ASSERT_EQ(Append(whole, "and"), 0);
  ASSERT_EQ(Append(steps, "and"), 0);
  trine_generate_options options{};
  options.struct_size = sizeof(options);
  options.max_tokens = 8;
  ASSERT_EQ(trine_generate(whole, &options, nullptr, nullptr), 0);
  EXPECT_EQ(trine_session_logits(steps), nullptr);
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(trine_evaluate(&steps, 1, nullptr), 0);
    ASSERT_NE(trine_session_logits(steps), nullptr);
    int32_t token = -1;
    ASSERT_EQ(trine_session_sample(steps, &token, nullptr), 0);
  }
  std::vector<int32_t> a(64), b(64);
  size_t na = 0, nb = 0;
  trine_session_tokens(whole, a.data(), a.size(), &na);
  trine_session_tokens(steps, b.data(), b.size(), &nb);
  a.resize(na);
  b.resize(nb);
  EXPECT_EQ(a, b);
  trine_session_close(whole);
  trine_session_close(steps);
}

TEST_F(CApiModelTest, SeveralSessionsShareAPass) {
  trine_session* sessions[] = {Open(), Open(), Open()};
  const char* prompts[] = {"the", "and in", "a much longer prompt than the others have"};
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Append(sessions[i], prompts[i]), 0);
  trine_failure why = Failure();
  EXPECT_EQ(trine_generate_together(sessions, 3, nullptr, nullptr, &why), 0) << why.message;
  trine_session* twice[] = {sessions[0], sessions[0]};
  EXPECT_EQ(trine_evaluate(twice, 2, &why), kInvalidArgument);
  EXPECT_THAT(why.message, HasSubstr("named twice"));
  for (trine_session* session : sessions) trine_session_close(session);
}

TEST_F(CApiModelTest, CancelsFromAnotherThread) {
  trine_session* session = Open();
  ASSERT_EQ(Append(session, "the"), 0);
  static std::atomic<bool> started;
  started = false;
  trine_generate_options options{};
  options.struct_size = sizeof(options);
  options.max_tokens = -1;
  options.on_text = [](void*, const char*, size_t) -> int32_t {
    started = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 0;
  };
  std::thread other([&] {
    while (!started) std::this_thread::yield();
    trine_session_cancel(session);
  });
  trine_generate_result result{};
  result.struct_size = sizeof(result);
  EXPECT_EQ(trine_generate(session, &options, &result, nullptr), 0);
  other.join();
  EXPECT_EQ(result.finish, static_cast<uint32_t>(TRINE_FINISH_CANCELLED));
  trine_session_close(session);
}

TEST_F(CApiModelTest, LoadingCanBeCancelled) {
  trine_engine_options options = Options(file_->path());
  options.on_progress = [](void*, double) -> int32_t { return 1; };
  trine_engine* engine = nullptr;
  trine_failure why = Failure();
  EXPECT_EQ(trine_engine_open(&options, &engine, &why), kCancelled);
  EXPECT_EQ(engine, nullptr);
}

TEST_F(CApiModelTest, TokenizesBothWays) {
  int32_t tokens[8];
  size_t count = 0;
  ASSERT_EQ(trine_tokenize(engine_, "the<|end|>", 10, TRINE_TOKENIZE_PARSE_SPECIAL, tokens, 8,
                           &count, nullptr),
            0);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(trine_token_is_end(engine_, tokens[1]), 1);
  EXPECT_EQ(trine_token_is_end(engine_, tokens[0]), 0);
  EXPECT_EQ(trine_token_is_end(engine_, -5), 0);
  // Without the flag, the mark is plain text.
  EXPECT_EQ(trine_tokenize(engine_, "the<|end|>", 10, 0, tokens, 8, &count, nullptr), 0);
  EXPECT_EQ(count, 8u);
  trine_failure why = Failure();
  EXPECT_EQ(trine_tokenize(engine_, "the<|end|>", 10, 0, tokens, 2, &count, &why), kOutOfRange);
  EXPECT_EQ(count, 8u);
  char text[16];
  size_t bytes = 0;
  ASSERT_EQ(trine_detokenize(engine_, tokens, 1, text, sizeof(text), &bytes, nullptr), 0);
  EXPECT_EQ(std::string(text, bytes), "the");
}

TEST_F(CApiModelTest, NullAndNonsenseAreRefused) {
  trine_failure why = Failure();
  trine_engine* engine = nullptr;
  EXPECT_EQ(trine_engine_open(nullptr, &engine, &why), kInvalidArgument);
  EXPECT_EQ(trine_engine_open(nullptr, nullptr, nullptr), kInvalidArgument);
  trine_engine_options options = Options(file_->path());
  EXPECT_EQ(trine_engine_open(&options, nullptr, &why), kInvalidArgument);
  options.struct_size = 0;
  EXPECT_EQ(trine_engine_open(&options, &engine, &why), kInvalidArgument);
  options = Options(file_->path());
  options.model = nullptr;
  EXPECT_EQ(trine_engine_open(&options, &engine, &why), kInvalidArgument);
  const auto refused = [&](const std::function<void(trine_engine_options*)>& spoil) {
    trine_engine_options o = Options(file_->path());
    spoil(&o);
    trine_failure f = Failure();
    trine_engine* e = nullptr;
    const int32_t status = trine_engine_open(&o, &e, &f);
    EXPECT_EQ(e, nullptr);
    EXPECT_NE(f.message[0], '\0');
    return status != 0;
  };
  EXPECT_TRUE(refused([](auto* o) { o->context = -2; }));
  EXPECT_TRUE(refused([](auto* o) { o->context = std::numeric_limits<int64_t>::max(); }));
  EXPECT_TRUE(refused([](auto* o) { o->batch_tokens = -1; }));
  EXPECT_TRUE(refused([](auto* o) { o->max_sequences = std::numeric_limits<int64_t>::min(); }));
  EXPECT_TRUE(refused([](auto* o) { o->threads = 0xffffffffu; }));
  EXPECT_TRUE(refused([](auto* o) { o->kv_type_k = "banana"; }));
  EXPECT_TRUE(refused([](auto* o) { o->tensor_split = "dgpu:3"; }));
  EXPECT_TRUE(refused([](auto* o) { o->tensor_split = "::,,"; }));
  EXPECT_TRUE(refused([](auto* o) { o->model = "/nonexistent"; }));
  EXPECT_TRUE(refused([](auto* o) { o->model = "/"; }));
  EXPECT_TRUE(refused([](auto* o) { o->flags = 1u << 5; }));

  EXPECT_EQ(trine_engine_describe(nullptr, nullptr), kInvalidArgument);
  trine_session* session = nullptr;
  EXPECT_EQ(trine_session_open(nullptr, nullptr, &session, &why), kInvalidArgument);
  EXPECT_EQ(trine_session_open(engine_, nullptr, nullptr, &why), kInvalidArgument);
  EXPECT_EQ(trine_session_append(nullptr, nullptr, 0, &why), kInvalidArgument);
  EXPECT_EQ(trine_session_append_text(nullptr, "a", 1, 0, &why), kInvalidArgument);
  EXPECT_EQ(trine_session_truncate(nullptr, 0), kInvalidArgument);
  EXPECT_EQ(trine_session_tokens(nullptr, nullptr, 0, nullptr), kInvalidArgument);
  EXPECT_EQ(trine_evaluate(nullptr, 2, &why), kInvalidArgument);
  EXPECT_EQ(trine_evaluate(nullptr, 0, &why), 0);
  EXPECT_EQ(trine_session_logits(nullptr), nullptr);
  EXPECT_EQ(trine_session_sample(nullptr, nullptr, &why), kInvalidArgument);
  EXPECT_EQ(trine_generate(nullptr, nullptr, nullptr, &why), kInvalidArgument);
  EXPECT_EQ(trine_session_logits_hash(nullptr, nullptr, 0), kInvalidArgument);
  EXPECT_EQ(trine_tokenize(nullptr, "a", 1, 0, nullptr, 0, nullptr, &why), kInvalidArgument);
  EXPECT_EQ(trine_detokenize(engine_, nullptr, 3, nullptr, 0, nullptr, &why), kInvalidArgument);
  trine_session_cancel(nullptr);
  trine_session_close(nullptr);
  trine_engine_close(nullptr);
}

TEST_F(CApiModelTest, SizesThatCutAMemberAreRefused) {
  trine_failure why = Failure();
  trine_engine_options options = Options(file_->path());
  trine_engine* engine = nullptr;
  for (uint32_t size : {5u, 10u, 12u, 18u, 99u}) {
    options.struct_size = size;
    EXPECT_EQ(trine_engine_open(&options, &engine, &why), kInvalidArgument) << size;
  }
  trine_sampler_options sampler;
  trine_sampler_options_init(&sampler, sizeof(sampler));
  trine_session_options session_options{};
  trine_session* session = nullptr;
  session_options.sampler = &sampler;
  session_options.struct_size = 10;
  EXPECT_EQ(trine_session_open(engine_, &session_options, &session, &why), kInvalidArgument);
  session_options.struct_size = sizeof(session_options);
  sampler.struct_size = 77;
  EXPECT_EQ(trine_session_open(engine_, &session_options, &session, &why), kInvalidArgument);
}

TEST_F(CApiModelTest, UnknownFlagsAndTokensAreRefused) {
  trine_failure why = Failure();
  trine_engine_options options = Options(file_->path());
  options.flags = 0xfffffff0u;
  trine_engine* engine = nullptr;
  EXPECT_EQ(trine_engine_open(&options, &engine, &why), kInvalidArgument);
  size_t count = 0;
  EXPECT_EQ(trine_tokenize(engine_, "a", 1, 0xff00u, nullptr, 0, &count, &why), kInvalidArgument);
  const int32_t outside[] = {-1, 99999999};
  char text[8];
  EXPECT_EQ(trine_detokenize(engine_, outside, 2, text, sizeof(text), &count, &why),
            kInvalidArgument);
  trine_session* session = Open();
  EXPECT_EQ(trine_session_logits_hash(session, text, sizeof(text)), kFailedPrecondition);
  trine_session_close(session);
}

TEST_F(CApiModelTest, BadRequestsLoseNothing) {
  trine_session* session = Open();
  trine_failure why = Failure();
  trine_generate_options options{};
  options.struct_size = sizeof(options);
  options.max_tokens = 4;
  EXPECT_EQ(trine_generate(session, &options, nullptr, &why), kFailedPrecondition);
  ASSERT_EQ(Append(session, "the"), 0);
  const std::vector<int32_t> many(1000, 65);
  EXPECT_EQ(trine_session_append(session, many.data(), many.size(), &why), kOutOfRange);
  EXPECT_THAT(why.message, HasSubstr("the context holds 256"));
  const int32_t bad = 1 << 30;
  EXPECT_EQ(trine_session_append(session, &bad, 1, &why), kInvalidArgument);
  EXPECT_EQ(trine_session_append(session, nullptr, 3, &why), kInvalidArgument);
  options.max_tokens = -7;
  EXPECT_EQ(trine_generate(session, &options, nullptr, &why), kInvalidArgument);
  options.struct_size = 1;
  EXPECT_EQ(trine_generate(session, &options, nullptr, &why), kInvalidArgument);
  // Bytes that are not UTF-8, and a NUL, are text, too.
  EXPECT_EQ(trine_session_append_text(session, "\xff\xfe\0\x80", 4, 0, &why), 0);
  options.struct_size = sizeof(options);
  options.max_tokens = 4;
  EXPECT_EQ(trine_generate(session, &options, nullptr, &why), 0) << why.message;
  trine_session_close(session);

  trine_sampler_options sampler;
  trine_sampler_options_init(&sampler, sizeof(sampler));
  sampler.temperature = std::numeric_limits<float>::quiet_NaN();
  trine_session_options session_options{};
  session_options.struct_size = sizeof(session_options);
  session_options.sampler = &sampler;
  EXPECT_EQ(trine_session_open(engine_, &session_options, &session, &why), kInvalidArgument);
  EXPECT_EQ(session, nullptr);
  trine_sampler_options_init(&sampler, sizeof(sampler));
  sampler.n_bias = 2;
  EXPECT_EQ(trine_session_open(engine_, &session_options, &session, &why), kInvalidArgument);
  session_options.sampler = nullptr;
  session_options.n_stop = 1;
  EXPECT_EQ(trine_session_open(engine_, &session_options, &session, &why), kInvalidArgument);
  const char* empty[] = {""};
  session_options.stop = empty;
  EXPECT_EQ(trine_session_open(engine_, &session_options, &session, &why), kInvalidArgument);
}

TEST_F(CApiModelTest, DamagedFilesLeaveTheHostAlive) {
  const std::vector<std::byte> whole = MakeTinyModel(*TinyModelByName("llama-q8")).ToBytes();
  uint64_t state = 7;
  int refused = 0;
  for (int i = 0; i < 60; ++i) {
    std::vector<std::byte> damaged = whole;
    for (int j = 0; j < 4; ++j) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      // Damage mostly the header, where it has effects.
      const size_t range = j < 3 ? std::min<size_t>(damaged.size(), 12000) : damaged.size();
      damaged[(state >> 20) % range] = static_cast<std::byte>(state >> 56);
    }
    const TempFile file(damaged);
    trine_engine_options options = Options(file.path());
    trine_engine* engine = nullptr;
    trine_failure why = Failure();
    if (trine_engine_open(&options, &engine, &why) != 0) {
      EXPECT_EQ(engine, nullptr);
      EXPECT_NE(why.message[0], '\0');
      ++refused;
    }
    trine_engine_close(engine);
  }
  EXPECT_GT(refused, 10);
}

TEST_F(CApiModelTest, ConversationsAreRenderedAndAppended) {
  constexpr char kTemplate[] =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
      "{{ tools | length if tools else 0 }}{{ x }}{% if add_generation_prompt %}!{% endif %}";
  const std::string messages = R"([{"role": "user", "content": "hi"}])";
  trine_chat_options options{};
  options.struct_size = sizeof(options);
  options.chat_template = kTemplate;
  options.tools = "[{}, {}]";
  options.variables = R"({"x": "y"})";
  char text[64];
  size_t bytes = 0;
  trine_failure why = Failure();
  const auto render = [&](const std::string& json, size_t capacity) {
    return trine_chat_render(engine_, json.data(), json.size(), &options, text, capacity, &bytes,
                             &why);
  };
  ASSERT_EQ(render(messages, sizeof(text)), 0) << why.message;
  EXPECT_EQ(std::string(text, bytes), "<user>hi2y!");
  EXPECT_EQ(render(messages, 3), kOutOfRange);
  EXPECT_EQ(bytes, 11u);
  options.flags = TRINE_CHAT_NO_GENERATION_PROMPT;
  ASSERT_EQ(render(messages, sizeof(text)), 0) << why.message;
  EXPECT_EQ(std::string(text, bytes), "<user>hi2y");

  trine_session* session = Open();
  const auto append = [&](const std::string& json) {
    return trine_session_append_chat(session, json.data(), json.size(), &options, &why);
  };
  const auto count = [&] {
    size_t n = 0;
    trine_session_tokens(session, nullptr, 0, &n);
    return n;
  };
  ASSERT_EQ(append(messages), 0) << why.message;
  const size_t once = count();
  EXPECT_GT(once, 0u);
  ASSERT_EQ(append(messages), 0) << why.message;
  EXPECT_EQ(count(), 2 * once);
  options.flags |= TRINE_CHAT_REPLACE;
  ASSERT_EQ(append(messages), 0) << why.message;
  EXPECT_EQ(count(), once);
  const std::string long_one =
      R"([{"role": "user", "content": ")" + std::string(5000, 'x') + "\"}]";
  EXPECT_EQ(append(long_one), kOutOfRange);
  EXPECT_EQ(count(), once) << "all or nothing";

  EXPECT_EQ(append("[{]"), kInvalidArgument);
  EXPECT_EQ(append("{}"), kInvalidArgument);
  options.tools = "{}";
  EXPECT_EQ(append(messages), kInvalidArgument);
  options.tools = nullptr;
  options.variables = "[";
  EXPECT_EQ(append(messages), kInvalidArgument);
  options.variables = nullptr;
  options.chat_template = "{{ raise_exception('Not so') }}";
  EXPECT_EQ(append(messages), kInvalidArgument);
  EXPECT_STREQ(why.message, "Not so");
  options.chat_template = nullptr;
  EXPECT_EQ(append(messages), kFailedPrecondition);
  options.flags = 1u << 20;
  EXPECT_EQ(append(messages), kInvalidArgument);
  options.flags = 0;
  options.struct_size = 1;
  EXPECT_EQ(append(messages), kInvalidArgument);
  EXPECT_EQ(trine_session_append_chat(session, nullptr, 0, nullptr, &why), kInvalidArgument);
  EXPECT_EQ(trine_chat_render(nullptr, "[]", 2, nullptr, nullptr, 0, &bytes, &why),
            kInvalidArgument);
  trine_session_close(session);
}

TEST_F(CApiModelTest, PackingIsAnOption) {
  for (const uint32_t flags : {0u, uint32_t{TRINE_ENGINE_NO_PACK}}) {
    for (const char* cache : {static_cast<const char*>(nullptr), "", "/nonexistent"}) {
      trine_engine_options options = Options(file_->path());
      options.flags = flags;
      options.pack_cache = cache;
      trine_failure why = Failure();
      trine_engine* engine = nullptr;
      EXPECT_EQ(trine_engine_open(&options, &engine, &why), 0) << why.message;
      trine_engine_close(engine);
    }
  }
  std::filesystem::remove(file_->path() + ".trine-pack");
}

TEST_F(CApiModelTest, ABosIsAddedToAnEmptySessionAlone) {
  trine_engine_close(engine_);
  engine_ = nullptr;
  TinyModel model = MakeTinyModel(*TinyModelByName("qwen2"));
  model.builder.SetBool("tokenizer.ggml.add_bos_token", true);
  file_ = std::make_unique<TempFile>(model.ToBytes());
  trine_failure why = Failure();
  const trine_engine_options engine = Options(file_->path());
  ASSERT_EQ(trine_engine_open(&engine, &engine_, &why), 0) << why.message;
  trine_chat_options options{};
  options.struct_size = sizeof(options);
  options.chat_template = "abc";
  trine_session* session = Open();
  const auto count_after_append = [&] {
    EXPECT_EQ(trine_session_append_chat(session, "[]", 2, &options, &why), 0) << why.message;
    size_t n = 0;
    trine_session_tokens(session, nullptr, 0, &n);
    return n;
  };
  const size_t once = count_after_append();
  EXPECT_EQ(count_after_append(), 2 * once - 1);
  options.flags = TRINE_CHAT_REPLACE;
  EXPECT_EQ(count_after_append(), once);
  trine_session_close(session);
}

}  // namespace
}  // namespace trine
