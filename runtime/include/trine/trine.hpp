// libtrine for C++20: classes that own the handles of trine/trine.h. Header only. A call that can
// fail returns a Result or a Status, which says why; nothing but lack of memory throws. The C API's
// rules about threads apply. docs/embedding.md has an example.
#ifndef TRINE_TRINE_HPP_
#define TRINE_TRINE_HPP_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trine/trine.h"

namespace trine::api {

class Status {
 public:
  Status() = default;
  Status(int32_t code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == 0; }
  int32_t code() const { return code_; }  // a number of absl::StatusCode
  const std::string& message() const { return message_; }

 private:
  int32_t code_ = 0;
  std::string message_;
};

// A value or the reason why there is none.
template <class T>
class Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: meant to convert
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: meant to convert
  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

namespace internal {

// Calls `call(trine_failure*)` and returns its status and message.
template <class Call>
Status Try(Call call) {
  trine_failure why{};
  why.struct_size = sizeof(why);
  const int32_t code = call(&why);
  return code == 0 ? Status() : Status(code, why.message);
}

// The functions that the C API calls back, which must outlive the call they are passed to.
struct Callbacks {
  std::function<bool(std::string_view)> on_text;
  std::function<void(int64_t, int64_t)> on_prompt;
  std::function<bool(const trine_token_event&)> on_token;

  static int32_t Text(void* user, const char* text, size_t bytes) {
    const auto& self = *static_cast<Callbacks*>(user);
    return self.on_text({text, bytes}) ? 0 : 1;
  }
  static void Prompt(void* user, int64_t done, int64_t total) {
    static_cast<Callbacks*>(user)->on_prompt(done, total);
  }
  static int32_t Token(void* user, const trine_token_event* event) {
    return static_cast<Callbacks*>(user)->on_token(*event) ? 0 : 1;
  }
};

}  // namespace internal

struct GenerateOptions {
  int64_t max_tokens = 256;
  std::function<bool(std::string_view text)> on_text;  // false ends the generation; must not throw
  std::function<void(int64_t done, int64_t total)> on_prompt;
  // Receives each token, before its text. false ends the generation. Must not throw.
  std::function<bool(const trine_token_event& event)> on_token;
  // on_token gets the token's log-probability, and those of this many likeliest tokens; -1: neither
  int32_t logprobs = -1;
  bool context_shift = false;
  int64_t keep = 0;  // how many first tokens a context shift keeps; -1: the whole prompt
  // Made by Head::Rerank; nullopt: no reranking.
  std::optional<trine_rerank_options> rerank = std::nullopt;
};

struct EmbedOptions {
  uint32_t pooling = TRINE_POOLING_DEFAULT;
  int32_t normalize = TRINE_NORMALIZE_DEFAULT;
};

class Engine;

// A head from `trine head train`. Any number of threads may use it.
class Head {
 public:
  struct Choice {
    size_t best = 0;                    // index of the label, or of the text
    std::vector<double> probabilities;  // the probability of each label or text
  };

  trine_head_info info() const {
    trine_head_info info{};
    info.struct_size = sizeof(info);
    trine_head_describe(get(), &info);
    return info;
  }
  // Chooses the label of one text, or the best of several texts, depending on the head's kind.
  Result<Choice> Choose(const std::vector<std::string>& texts) const {
    std::vector<const char*> pointers;
    std::vector<size_t> lengths;
    for (const std::string& text : texts) {
      pointers.push_back(text.data());
      lengths.push_back(text.size());
    }
    Choice choice;
    choice.probabilities.resize(info().kind == TRINE_HEAD_LABEL ? 2 : texts.size());
    Status status = internal::Try([&](trine_failure* why) {
      return trine_head_choose(get(), pointers.data(), lengths.data(), texts.size(), &choice.best,
                               choice.probabilities.data(), choice.probabilities.size(), why);
    });
    if (!status.ok()) return status;
    return choice;
  }
  // Returns options for GenerateOptions::rerank.
  trine_rerank_options Rerank(int32_t top = 0, double weight = 0) const {
    trine_rerank_options options{};
    options.struct_size = sizeof(options);
    options.top = top;
    options.head = get();
    options.weight = weight;
    return options;
  }
  trine_head* get() const { return handle_.get(); }

 private:
  friend class Engine;
  struct Close {
    void operator()(trine_head* head) const { trine_head_close(head); }
  };
  explicit Head(trine_head* handle) : handle_(handle) {}
  std::unique_ptr<trine_head, Close> handle_;
};

class Session {
 public:
  Status Append(const std::vector<int32_t>& tokens) {
    return internal::Try([&](trine_failure* why) {
      return trine_session_append(get(), tokens.data(), tokens.size(), why);
    });
  }
  Status AppendText(std::string_view text, uint32_t flags = 0) {
    return internal::Try([&](trine_failure* why) {
      return trine_session_append_text(get(), text.data(), text.size(), flags, why);
    });
  }
  // Appends messages, a JSON array, formatted with the chat template. Sets options.struct_size.
  Status AppendChat(std::string_view messages, trine_chat_options options = {}) {
    options.struct_size = sizeof(options);
    return internal::Try([&](trine_failure* why) {
      return trine_session_append_chat(get(), messages.data(), messages.size(), &options, why);
    });
  }
  Status Evaluate() {
    trine_session* const one = get();
    return internal::Try([&](trine_failure* why) { return trine_evaluate(&one, 1, why); });
  }
  const float* logits() const { return trine_session_logits(get()); }
  Result<int32_t> Sample() {
    int32_t token = 0;
    Status status =
        internal::Try([&](trine_failure* why) { return trine_session_sample(get(), &token, why); });
    if (!status.ok()) return status;
    return token;
  }
  Result<trine_generate_result> Generate(const GenerateOptions& options) {
    internal::Callbacks callbacks{options.on_text, options.on_prompt, options.on_token};
    trine_generate_options c{};
    c.struct_size = sizeof(c);
    c.max_tokens = options.max_tokens;
    c.user = &callbacks;
    if (options.on_text) c.on_text = internal::Callbacks::Text;
    if (options.on_prompt) c.on_prompt = internal::Callbacks::Prompt;
    if (options.on_token) c.on_token = internal::Callbacks::Token;
    if (options.logprobs >= 0) {
      c.flags |= TRINE_GENERATE_LOGPROBS;
      c.n_logprobs = options.logprobs;
    }
    if (options.context_shift) c.flags |= TRINE_GENERATE_CONTEXT_SHIFT;
    c.keep = options.keep;
    if (options.rerank) c.rerank = &*options.rerank;
    trine_generate_result result{};
    result.struct_size = sizeof(result);
    Status status =
        internal::Try([&](trine_failure* why) { return trine_generate(get(), &c, &result, why); });
    if (!status.ok()) return status;
    return result;
  }
  Status Truncate(int64_t n) {
    const int32_t code = trine_session_truncate(get(), n);
    return code == 0 ? Status() : Status(code, "the session could not be truncated");
  }
  Status Erase(int64_t begin, int64_t end) {
    return internal::Try(
        [&](trine_failure* why) { return trine_session_erase(get(), begin, end, why); });
  }
  Result<int64_t> Checkpoint() {
    int64_t t = 0;
    Status status =
        internal::Try([&](trine_failure* why) { return trine_session_checkpoint(get(), &t, why); });
    if (!status.ok()) return status;
    return t;
  }
  Status Regress(int64_t t) {
    return internal::Try([&](trine_failure* why) { return trine_session_regress(get(), t, why); });
  }
  Status Forget(int64_t t) {
    return internal::Try([&](trine_failure* why) { return trine_session_forget(get(), t, why); });
  }
  Result<Session> Fork() { return ForkWith(nullptr); }
  Result<Session> Fork(uint64_t seed) { return ForkWith(&seed); }
  // Returns a head's log-odds for the session's text.
  Result<double> HeadValue(const Head& head) {
    double log_odds = 0;
    Status status = internal::Try([&](trine_failure* why) {
      return trine_session_head_value(get(), head.get(), &log_odds, why);
    });
    if (!status.ok()) return status;
    return log_odds;
  }
  void Cancel() { trine_session_cancel(get()); }  // callable from any thread
  std::vector<int32_t> tokens() const {
    size_t count = 0;
    trine_session_tokens(get(), nullptr, 0, &count);
    std::vector<int32_t> out(count);
    trine_session_tokens(get(), out.data(), out.size(), &count);
    return out;
  }
  std::string logits_hash() const {
    char text[64] = "";
    trine_session_logits_hash(get(), text, sizeof(text));
    return text;
  }
  trine_session* get() const { return handle_.get(); }

 private:
  friend class Engine;
  struct Close {
    void operator()(trine_session* session) const { trine_session_close(session); }
  };
  explicit Session(trine_session* handle) : handle_(handle) {}
  Result<Session> ForkWith(const uint64_t* seed) {
    trine_session* fork = nullptr;
    Status status = internal::Try(
        [&](trine_failure* why) { return trine_session_fork(get(), seed, &fork, why); });
    if (!status.ok()) return status;
    return Session(fork);
  }
  std::unique_ptr<trine_session, Close> handle_;
};

class Engine {
 public:
  // Sets options.struct_size.
  static Result<Engine> Open(trine_engine_options options) {
    options.struct_size = sizeof(options);
    trine_engine* handle = nullptr;
    Status status = internal::Try(
        [&](trine_failure* why) { return trine_engine_open(&options, &handle, why); });
    if (!status.ok()) return status;
    return Engine(handle);
  }
  static Result<Engine> Open(const std::string& model) {
    trine_engine_options options{};
    options.model = model.c_str();
    return Open(options);
  }
  // The session may outlive this object: the engine stays in memory as long as its sessions.
  Result<Session> OpenSession(trine_session_options options = {}) const {
    options.struct_size = sizeof(options);
    trine_session* handle = nullptr;
    Status status = internal::Try(
        [&](trine_failure* why) { return trine_session_open(get(), &options, &handle, why); });
    if (!status.ok()) return status;
    return Session(handle);
  }
  // Opens a file from `trine head train`. The engine stays in memory as long as the head.
  Result<Head> OpenHead(const std::string& path) const {
    trine_head* handle = nullptr;
    Status status = internal::Try(
        [&](trine_failure* why) { return trine_head_open(get(), path.c_str(), &handle, why); });
    if (!status.ok()) return status;
    return Head(handle);
  }
  trine_engine_info info() const {
    trine_engine_info info{};
    info.struct_size = sizeof(info);
    trine_engine_describe(get(), &info);
    return info;
  }
  // Returns the segments of the current placement, with their counts.
  std::vector<trine_segment_info> segments() const {
    std::vector<trine_segment_info> all;
    trine_segment_info info{};
    info.struct_size = sizeof(info);
    while (trine_engine_segment(get(), all.size(), &info) == 0) {
      if (!all.empty() && info.placement != all[0].placement) {
        all.clear();  // the model was placed again in between
        continue;
      }
      all.push_back(info);
    }
    return all;
  }
  std::vector<trine_lost_device> lost_devices() const {
    std::vector<trine_lost_device> all;
    trine_lost_device lost{};
    lost.struct_size = sizeof(lost);
    while (trine_engine_lost_device(get(), all.size(), &lost) == 0) all.push_back(lost);
    return all;
  }
  // Readmits a lost device, or all lost devices if `device` is "".
  Status Readmit(const std::string& device = "") const {
    return internal::Try(
        [&](trine_failure* why) { return trine_engine_readmit(get(), device.c_str(), why); });
  }
  Status WriteTrace() const {
    return internal::Try([&](trine_failure* why) { return trine_engine_write_trace(get(), why); });
  }
  Result<std::vector<int32_t>> Tokenize(std::string_view text, uint32_t flags = 0) const {
    // Few texts have more tokens than bytes. If one has, the second attempt has the right size.
    std::vector<int32_t> tokens(text.size() + 8);
    size_t count = 0;
    for (int attempt = 0;; ++attempt) {
      Status status = internal::Try([&](trine_failure* why) {
        return trine_tokenize(get(), text.data(), text.size(), flags, tokens.data(), tokens.size(),
                              &count, why);
      });
      const bool fits = count <= tokens.size();
      tokens.resize(count);
      if (status.ok()) return tokens;
      if (fits || attempt > 0) return status;
    }
  }
  // Returns one vector per text, or with TRINE_POOLING_NONE the vectors of all its tokens in a row.
  // Needs an engine with TRINE_ENGINE_EMBEDDINGS or TRINE_ENGINE_HIDDEN_ROWS.
  Result<std::vector<std::vector<float>>> Embed(const std::vector<std::vector<int32_t>>& texts,
                                                const EmbedOptions& options = {}) const {
    std::vector<const int32_t*> tokens;
    std::vector<size_t> lengths;
    for (const std::vector<int32_t>& text : texts) {
      tokens.push_back(text.data());
      lengths.push_back(text.size());
    }
    trine_embed_options c{};
    c.struct_size = sizeof(c);
    c.pooling = options.pooling;
    c.normalize = options.normalize;
    std::vector<float> values;
    size_t count = 0;
    // The first call counts the values. Unless it fails for another reason, the second computes
    // them.
    for (;;) {
      Status status = internal::Try([&](trine_failure* why) {
        return trine_embed(get(), tokens.data(), lengths.data(), texts.size(), &c, values.data(),
                           values.size(), &count, why);
      });
      if (status.ok()) break;
      if (count <= values.size()) return status;
      values.resize(count);
    }
    // Each text has one vector, or one for each of its tokens.
    const auto width = static_cast<size_t>(info().n_embd);
    const bool one_each = count == texts.size() * width;
    std::vector<std::vector<float>> vectors;
    auto at = values.cbegin();
    for (const std::vector<int32_t>& text : texts) {
      const auto n = static_cast<std::ptrdiff_t>((one_each ? 1 : text.size()) * width);
      vectors.emplace_back(at, at + n);
      at += n;
    }
    return vectors;
  }
  // Formats messages, a JSON array, with the chat template. Sets options.struct_size.
  Result<std::string> RenderChat(std::string_view messages, trine_chat_options options = {}) const {
    options.struct_size = sizeof(options);
    std::string text(2 * messages.size() + 1024, '\0');
    size_t bytes = 0;
    for (int attempt = 0;; ++attempt) {
      Status status = internal::Try([&](trine_failure* why) {
        return trine_chat_render(get(), messages.data(), messages.size(), &options, text.data(),
                                 text.size(), &bytes, why);
      });
      const bool fits = bytes <= text.size();
      text.resize(bytes);
      if (status.ok()) return text;
      if (fits || attempt > 0) return status;
    }
  }
  trine_engine* get() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(trine_engine* engine) const { trine_engine_close(engine); }
  };
  explicit Engine(trine_engine* handle) : handle_(handle) {}
  std::unique_ptr<trine_engine, Close> handle_;
};

}  // namespace trine::api

#endif  // TRINE_TRINE_HPP_
