// The same in C++: several sessions on one engine, each on a thread of its own. Their tokens share
// passes through the model.
//
//   c++ -std=c++20 generate.cc $(pkg-config --cflags --libs trine) -pthread -o generate
//   ./generate model.gguf "Once upon a time" "The old man" "In the forest"
#include <cstdio>
#include <string>
#include <thread>
#include <trine/trine.hpp>
#include <vector>

namespace {

// Appends the answer to `text`; returns what went wrong, if something did.
trine::api::Status Continue(const trine::api::Engine& engine, std::string* text) {
  auto session = engine.OpenSession();
  if (!session) return session.status();
  if (auto status = session->AppendText(*text); !status.ok()) return status;
  trine::api::GenerateOptions options;
  options.max_tokens = 48;
  options.on_text = [&](std::string_view piece) {
    text->append(piece);
    return true;
  };
  return session->Generate(options).status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MODEL.gguf PROMPT...\n", argv[0]);
    return 2;
  }
  trine_engine_options options{};
  options.model = argv[1];
  options.max_sequences = argc - 2;
  const auto engine = trine::api::Engine::Open(options);
  if (!engine) {
    std::fprintf(stderr, "open: %s\n", engine.status().message().c_str());
    return 1;
  }
  std::vector<std::string> texts(argv + 2, argv + argc);
  std::vector<trine::api::Status> statuses(texts.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < texts.size(); ++i) {
    threads.emplace_back([&, i] { statuses[i] = Continue(*engine, &texts[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  int failed = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!statuses[i].ok()) {
      std::fprintf(stderr, "%s\n", statuses[i].message().c_str());
      failed = 1;
    }
    std::printf("[%zu] %s\n", i + 1, texts[i].c_str());
  }
  return failed;
}
