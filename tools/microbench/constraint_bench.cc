// Measures what constrained output costs per token. Draws random documents along the masks of
// several grammars and schemas, over a vocabulary put together from those of real models. The first
// documents are cold; the others show the cost in steady use. A tool, not a test.
//
//   trine-constraint-bench [--tokens N] VOCABULARY.gguf...
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "runtime/constraint/mask/constraint.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/vocabulary.h"

namespace trine {
namespace {

// This thread's CPU time: other work on the machine does not count.
double Microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

constexpr int64_t kTokensPerDocument = 200;
constexpr int kColdDocuments = 1;
constexpr int kDocuments = 60;

struct Workload {
  const char* name;
  bool is_schema;
  const char* text;
};

constexpr Workload kWorkloads[] = {
    {"any JSON", true, "{}"},
    {"person", true,
     R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer",
         "minimum":0,"maximum":130},"email":{"type":"string","format":"email"},"tags":{"type":
         "array","items":{"type":"string"}},"address":{"type":"object","properties":{"street":
         {"type":"string"},"city":{"type":"string"},"zip":{"type":"string","pattern":
         "^[0-9]{5}$"}},"required":["street","city"]}},"required":["name","age","tags"]})"},
    {"bounded strings", true,
     R"({"type":"array","items":{"type":"object","properties":{"title":{"type":"string",
         "minLength":5,"maxLength":80},"body":{"type":"string","maxLength":2000}},"required":
         ["title","body"]},"minItems":3})"},
    {"tree", true,
     R"({"$defs":{"node":{"type":"object","properties":{"value":{"type":"number"},"children":
         {"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["value","children"]}},
         "$ref":"#/$defs/node"})"},
    {"arithmetic", false,
     "root ::= (expr \"=\" ws term \"\\n\")+\nexpr ::= term ([-+*/] ws term)*\n"
     "term ::= ident | num | \"(\" ws expr \")\" ws\nident ::= [a-z] [a-z0-9_]* ws\n"
     "num ::= [0-9]+ ws\nws ::= [ \\t\\n]*"},
    {"list of lines", false, "root ::= (\"- \" [^\\n]+ \"\\n\"){3,}"},
};

// Makes a tokenizer of `size` different tokens: every byte, the tokens of all vocabularies and, if
// those are too few, pairs of them.
absl::StatusOr<std::shared_ptr<const Tokenizer>> MakeTokenizer(
    const std::vector<std::string>& paths, size_t size) {
  absl::flat_hash_set<std::string> seen;
  std::vector<std::string> texts;
  const auto add = [&](std::string_view bytes) {
    if (bytes.empty() || texts.size() >= size || !seen.emplace(bytes).second) return;
    AppendAlphabet(bytes, &texts.emplace_back());
  };
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    add(std::string_view(&c, 1));
  }
  for (const std::string& path : paths) {
    auto file = gguf::File::Open(path);
    if (!file.ok()) return file.status();
    const auto data = ReadTokenizerData((*file)->metadata());
    if (!data.ok()) return data.status();
    const auto tokenizer = Tokenizer::Create(*data);
    if (!tokenizer.ok()) return tokenizer.status();
    for (int32_t id = 0; id < (*tokenizer)->vocab_size(); ++id) add((*tokenizer)->TokenBytes(id));
  }
  for (size_t i = 256; texts.size() < size && i + 1 < texts.size(); ++i) {
    std::string pair;
    AppendAlphabetBytes(texts[i], &pair);
    AppendAlphabetBytes(texts[i + 1], &pair);
    add(pair);
  }
  TokenizerData data;
  data.tokens.assign(texts.begin(), texts.end());
  data.types.assign(texts.size(), TokenType::kNormal);
  data.tokens.push_back("<|endoftext|>");
  data.types.push_back(TokenType::kControl);
  data.eos = static_cast<int32_t>(texts.size());
  return Tokenizer::Create(data);
}

// Draws an allowed token, all equally likely. Draws `end` only if nothing else is allowed.
int32_t Draw(const std::vector<uint32_t>& mask, int32_t end, std::mt19937* random) {
  std::vector<int32_t> choices;
  for (size_t word = 0; word < mask.size(); ++word) {
    for (uint32_t bits = mask[word]; bits != 0; bits &= bits - 1) {
      const auto id = static_cast<int32_t>(word * 32 + static_cast<size_t>(__builtin_ctz(bits)));
      if (id != end) choices.push_back(id);
    }
  }
  return choices.empty() ? end : choices[(*random)() % choices.size()];
}

void Report(const char* when, std::vector<double>* times) {
  if (times->empty()) return;
  std::sort(times->begin(), times->end());
  double sum = 0;
  for (const double t : *times) sum += t;
  const auto at = [&](double part) {
    return (*times)[static_cast<size_t>(part * static_cast<double>(times->size() - 1))];
  };
  std::printf("  %-6s %6zu tokens   mean %8.1f us   p50 %8.1f   p99 %8.1f   max %8.1f\n", when,
              times->size(), sum / static_cast<double>(times->size()), at(0.5), at(0.99), at(1));
}

int Run(const Workload& workload, const ConstraintVocabulary& vocabulary) {
  const double begin = Microseconds();
  const auto constraint = workload.is_schema ? Constraint::FromJsonSchema(workload.text, vocabulary)
                                             : Constraint::FromGbnf(workload.text, vocabulary);
  if (!constraint.ok()) {
    std::fprintf(stderr, "%s: %s\n", workload.name,
                 std::string(constraint.status().message()).c_str());
    return 1;
  }
  std::printf("%s: compiled in %.1f ms, %u states\n", workload.name,
              (Microseconds() - begin) / 1000, (*constraint)->automaton().size());
  std::vector<double> cold, steady;
  std::vector<uint32_t> mask((*constraint)->mask_words());
  std::mt19937 random(1);
  for (int document = 0; document < kDocuments; ++document) {
    ConstraintState state(*constraint);
    for (int64_t left = kTokensPerDocument; left > 0 && !state.ended(); --left) {
      const double before = Microseconds();
      state.Mask(left, mask);
      const double masking = Microseconds() - before;
      const int32_t token = Draw(mask, vocabulary.tokenizer->eos(), &random);
      const double accepting = Microseconds();
      if (!state.Accept(token).ok()) return 1;
      const double us = masking + Microseconds() - accepting;
      (document < kColdDocuments ? cold : steady).push_back(us);
    }
  }
  Report("cold", &cold);
  Report("steady", &steady);
  return 0;
}

int Main(int argc, char** argv) {
  size_t size = 151936;
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--tokens" && i + 1 < argc) {
      size = static_cast<size_t>(std::max(256, std::atoi(argv[++i])));
    } else {
      paths.emplace_back(argv[i]);
    }
  }
  if (paths.empty()) {
    std::fprintf(stderr, "usage: trine-constraint-bench [--tokens N] VOCABULARY.gguf...\n");
    return 2;
  }
  const auto tokenizer = MakeTokenizer(paths, size);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", std::string(tokenizer.status().message()).c_str());
    return 1;
  }
  const double begin = Microseconds();
  const ConstraintVocabulary vocabulary = ConstraintVocabulary::Of(*tokenizer);
  std::printf("%d tokens, made ready in %.1f ms: %u nodes\n", (*tokenizer)->vocab_size(),
              (Microseconds() - begin) / 1000, vocabulary.trie->size());
  int failures = 0;
  for (const Workload& workload : kWorkloads) failures += Run(workload, vocabulary);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace trine

int main(int argc, char** argv) { return trine::Main(argc, argv); }
