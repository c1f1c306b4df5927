// trine-server-load: measures a server under load. Each client sends a request, waits for the last
// byte of the answer and sends the next one, for a given time. Prints the tokens per second that
// all clients got, and how long they waited for the first token. Works with any server that has
// /v1/completions.
//
// Counts only the time in which all clients are busy: neither the beginning, when all send at once,
// nor the end, when fewer and fewer wait for their last answer.
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct LoadOptions {
  std::string host = "127.0.0.1";
  std::string port = "8080";
  std::string api_key;
  int clients = 16;
  double seconds = 10;
  double warm_up = 2;  // before the seconds that count
  int max_tokens = 64;
  int prompt_words = 32;
  uint32_t seed = 1;
};

struct Answer {
  bool ok = false;
  Clock::time_point begin{}, end{};
  std::vector<Clock::time_point> pieces = {};  // when each piece came
};

double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Returns a random prompt, so that no prompt is in the server's cache.
std::string Prompt(int words, std::mt19937* random) {
  static constexpr const char* kWords[] = {"the",  "fox",  "ran", "over", "hill",  "little", "girl",
                                           "saw",  "big",  "red", "ball", "and",   "then",   "went",
                                           "home", "with", "her", "dog",  "under", "tree"};
  std::string text;
  for (int i = 0; i < words; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : " ", kWords[(*random)() % std::size(kWords)]);
  }
  return text;
}

int Connect(const LoadOptions& options) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(options.host.c_str(), options.port.c_str(), &hints, &found) != 0) return -1;
  int fd = -1;
  for (const addrinfo* a = found; a != nullptr && fd < 0; a = a->ai_next) {
    fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
      close(fd);
      fd = -1;
    }
  }
  freeaddrinfo(found);
  const timeval limit = {120, 0};
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  return fd;
}

// Sends one request on a connection of its own.
Answer Ask(const LoadOptions& options, const std::string& prompt) {
  Answer answer;
  answer.begin = Clock::now();
  const int fd = Connect(options);
  if (fd < 0) return answer;
  const Json body = {{"prompt", prompt},   {"max_tokens", options.max_tokens},
                     {"stream", true},     {"temperature", 0},
                     {"ignore_eos", true}, {"cache_prompt", false}};
  const std::string json = body.dump();
  const std::string request = absl::StrCat(
      "POST /v1/completions HTTP/1.1\r\nHost: ", options.host, ":", options.port,
      "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ", json.size(),
      options.api_key.empty() ? "" : "\r\nAuthorization: Bearer ", options.api_key, "\r\n\r\n",
      json);
  bool sent = true;
  for (size_t at = 0; sent && at < request.size();) {
    const ssize_t n = send(fd, request.data() + at, request.size() - at, MSG_NOSIGNAL);
    sent = n > 0;
    at += sent ? static_cast<size_t>(n) : 0;
  }
  std::string seen;
  char buffer[16384];
  size_t looked_at = 0;
  while (sent) {
    const ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
    if (n <= 0) break;
    seen.append(buffer, static_cast<size_t>(n));
    constexpr std::string_view kMark = "data: {";
    for (size_t at = seen.find(kMark, looked_at); at != std::string::npos;
         at = seen.find(kMark, looked_at)) {
      answer.pieces.push_back(Clock::now());
      looked_at = at + kMark.size();
    }
    if (seen.size() > kMark.size()) looked_at = std::max(looked_at, seen.size() - kMark.size());
  }
  close(fd);
  answer.end = Clock::now();
  answer.ok = seen.compare(0, 12, "HTTP/1.1 200") == 0 &&
              seen.find("data: [DONE]") != std::string::npos && !answer.pieces.empty();
  return answer;
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(q * static_cast<double>(values.size())))];
}

// Returns the answers that all clients got, and counts the requests that failed.
std::vector<Answer> AskUntil(Clock::time_point end, const LoadOptions& options, int64_t* failed) {
  std::mutex mutex;
  std::vector<Answer> answers;
  std::vector<std::thread> threads;
  for (int c = 0; c < options.clients; ++c) {
    threads.emplace_back([&, c] {
      std::mt19937 random(options.seed * 1000003u + static_cast<uint32_t>(c));
      while (Clock::now() < end) {
        Answer answer = Ask(options, Prompt(options.prompt_words, &random));
        std::unique_lock lock(mutex);
        if (answer.ok) {
          answers.push_back(std::move(answer));
          continue;
        }
        ++*failed;
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return answers;
}

int Run(const LoadOptions& options) {
  const Clock::time_point begin = Clock::now() + Seconds(options.warm_up);
  const Clock::time_point end = begin + Seconds(options.seconds);
  int64_t failed = 0;
  const std::vector<Answer> answers = AskUntil(end, options, &failed);
  const auto counts = [&](Clock::time_point time) { return time >= begin && time < end; };
  std::vector<double> first, all;
  double tokens = 0;
  for (const Answer& a : answers) {
    // All answers have max_tokens tokens, because the end of a text is ignored. Servers differ in
    // the number of pieces.
    const double of_piece = options.max_tokens / static_cast<double>(a.pieces.size());
    tokens +=
        of_piece * static_cast<double>(std::count_if(a.pieces.begin(), a.pieces.end(), counts));
    if (!counts(a.begin)) continue;
    first.push_back(Milliseconds(a.pieces.front() - a.begin));
    all.push_back(Milliseconds(a.end - a.begin));
  }
  const Json result = {{"clients", options.clients},
                       {"seconds", options.seconds},
                       {"requests", first.size()},
                       {"failed", failed},
                       {"tokens", tokens},
                       {"tokens_per_second", tokens / options.seconds},
                       {"first_token_ms",
                        {{"p50", Quantile(first, 0.5)},
                         {"p95", Quantile(first, 0.95)},
                         {"max", Quantile(first, 1)}}},
                       {"request_ms", {{"p50", Quantile(all, 0.5)}, {"p95", Quantile(all, 0.95)}}}};
  std::printf("%s\n", result.dump().c_str());
  return failed == 0 && !first.empty() ? 0 : 1;
}

}  // namespace
}  // namespace trine

int main(int argc, char** argv) {
  trine::LoadOptions options;
  CLI::App app(
      "Clients of a server with OpenAI's /v1/completions, for so long; prints one line of JSON");
  app.add_option("--host", options.host)->capture_default_str();
  app.add_option("--port", options.port)->capture_default_str();
  app.add_option("--api-key", options.api_key);
  app.add_option("--clients", options.clients)->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--seconds", options.seconds)
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  app.add_option("--warm-up", options.warm_up, "Seconds before those that count")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_option("--max-tokens", options.max_tokens)
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--prompt-words", options.prompt_words)
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--seed", options.seed)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return trine::Run(options);
}
