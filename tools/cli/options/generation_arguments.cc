#include "tools/cli/options/generation_arguments.h"

#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "runtime/base/version.h"
#include "runtime/chat/chat_template.h"
#include "runtime/gguf/gguf_file.h"
#include "runtime/head/head_file.h"
#include "runtime/pack_cache/hash64.h"
#include "runtime/tokenizer/utf8.h"
#include "tools/cli/options/read_input.h"

namespace trine {
namespace {

// Parses a token id, a sign and the bias.
absl::StatusOr<LogitBias> ParseBias(const std::string& text) {
  const size_t sign = text.find_first_of("+-", 1);
  LogitBias bias;
  if (sign == std::string::npos || !absl::SimpleAtoi(text.substr(0, sign), &bias.token) ||
      !absl::SimpleAtof(text.substr(sign + (text[sign] == '+' ? 1 : 0)), &bias.bias)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--logit-bias: '", text, "': write a token id and what to add, such as 42+1.5 or 42-inf"));
  }
  return bias;
}

// Adds an option that needs another one; "": none.
void AddWith(const std::string& needs, Command command, const char* name, std::string& value,
             const char* help) {
  if (needs.empty()) {
    command.AddOption(name, value, help);
  } else {
    command.AddOption(name, value, absl::StrCat("With ", needs, ": ", help)).Needs(needs);
  }
}

// Returns the status with an option's name in place of that of the sampler's member, which some
// options are not called by.
absl::Status NameOption(const absl::Status& status) {
  constexpr std::pair<const char*, const char*> kOptions[] = {
      {"temp", "--temp"},
      {"top_k", "--top-k"},
      {"top_p", "--top-p"},
      {"min_p", "--min-p"},
      {"typical_p", "--typical"},
      {"repeat_last_n", "--repeat-last-n"},
      {"repeat_penalty", "--repeat-penalty"},
      {"presence_penalty", "--presence-penalty"},
      {"frequency_penalty", "--frequency-penalty"},
      {"mirostat", "--mirostat"},
      {"mirostat_eta", "--mirostat-lr"},
      {"mirostat_tau", "--mirostat-ent"},
      {"logit_bias", "--logit-bias"},
      {"stage order", "--samplers"},
  };
  for (const auto& [member, option] : kOptions) {
    absl::string_view rest = status.message();
    if (!absl::ConsumePrefix(&rest, absl::StrCat("the sampler's ", member, " "))) continue;
    return absl::Status(status.code(), absl::StrCat(option, " ", rest));
  }
  return status;
}

}  // namespace

void AddSamplingOptions(Command command, SamplingArguments* a) {
  SamplerOptions& o = a->options;
  a->order = StageOrderText(o.stages);
  command.AddOption("-s,--seed", a->seed, "Seed of the sampler; -1: another one each time")
      .Range(int64_t{-1}, std::numeric_limits<int64_t>::max())
      .ShowDefault();
  command.AddOption("--temp", o.temp, "Temperature; 0: always the likeliest token").ShowDefault();
  command.AddOption("--top-k", o.top_k, "Keep the k likeliest tokens; 0: all").ShowDefault();
  command.AddOption("--top-p", o.top_p, "Keep the likeliest tokens up to this probability; 1: all")
      .ShowDefault();
  command.AddOption("--min-p", o.min_p, "Drop tokens below this share of the best one; 0: none")
      .ShowDefault();
  command.AddOption("--typical", o.typical_p, "Locally typical sampling; 1: off").ShowDefault();
  command
      .AddOption("--repeat-last-n", o.repeat_last_n,
                 "Tokens the penalties look back on; 0: none, -1: all")
      .ShowDefault();
  command.AddOption("--repeat-penalty", o.repeat_penalty, "Divides repeated logits; 1: off")
      .ShowDefault();
  command.AddOption("--presence-penalty", o.presence_penalty, "Taken off once per token seen")
      .ShowDefault();
  command.AddOption("--frequency-penalty", o.frequency_penalty, "Taken off for each time seen")
      .ShowDefault();
  command.AddOption("--mirostat", o.mirostat, "0: off, 2: mirostat 2.0").ShowDefault();
  command.AddOption("--mirostat-lr", o.mirostat_eta, "Mirostat's learning rate").ShowDefault();
  command.AddOption("--mirostat-ent", o.mirostat_tau, "Mirostat's target surprise").ShowDefault();
  command.AddOption("-l,--logit-bias", a->logit_bias,
                    "TOKEN+BIAS or TOKEN-BIAS, such as 42-inf; may be repeated");
  command.AddOption("--samplers", a->order, "The stages in their order, separated by ';'")
      .ShowDefault();
}

absl::StatusOr<SamplerOptions> MakeSamplerOptions(const SamplingArguments& a) {
  SamplerOptions options = a.options;
  options.seed = a.seed >= 0 ? static_cast<uint64_t>(a.seed) : std::random_device()();
  auto stages = ParseStageOrder(a.order);
  if (!stages.ok()) return NameOption(stages.status());
  options.stages = *std::move(stages);
  for (const std::string& text : a.logit_bias) {
    const auto bias = ParseBias(text);
    if (!bias.ok()) return bias.status();
    options.logit_bias.push_back(*bias);
  }
  // Biases are checked again with the model's own vocabulary when that is known.
  if (absl::Status s = Validate(options, kMaxVocabSize); !s.ok()) return NameOption(s);
  return options;
}

void AddChatTemplateOptions(Command command, ChatArguments* a, const std::string& needs) {
  AddWith(needs, command, "--chat-template", a->chat_template,
          "the chat template, a file or the template itself (Jinja), in place of the model's");
  AddWith(needs, command, "--chat-template-kwargs", a->variables,
          "what the template is told besides, a JSON object: '{\"enable_thinking\": false}'");
}

void AddChatOptions(Command command, ChatArguments* a, const std::string& needs) {
  AddWith(needs, command, "--system-prompt", a->system_prompt, "a system message; also -sys");
  AddChatTemplateOptions(command, a, needs);
}

absl::StatusOr<std::string> ReadChatTemplate(const ChatArguments& arguments) {
  // Every template has tags; hardly any file name has.
  if (arguments.chat_template.empty() || arguments.chat_template.find("{{") != std::string::npos ||
      arguments.chat_template.find("{%") != std::string::npos) {
    return arguments.chat_template;
  }
  auto source = ReadWholeFile(arguments.chat_template);
  if (source.ok()) return source;
  return absl::Status(source.status().code(),
                      absl::StrCat("--chat-template ", source.status().message(),
                                   ": it is a file or a template; no templates have names here"));
}

absl::StatusOr<ChatTemplate> LoadChatTemplate(const ChatArguments& arguments,
                                              const Engine& engine) {
  const Tokenizer& tokenizer = *engine.tokenizer();
  auto source = ReadChatTemplate(arguments);
  if (!source.ok()) return source.status();
  return source->empty() ? ChatTemplate::FromModel(engine.file().metadata(), tokenizer)
                         : ChatTemplate::FromSource(*std::move(source), tokenizer);
}

absl::StatusOr<ChatOptions> MakeChatOptions(const ChatArguments& arguments) {
  if (absl::Status s = ValidateUtf8(arguments.system_prompt, "the system prompt"); !s.ok())
    return s;
  ChatOptions options;
  if (arguments.variables.empty()) return options;
  auto extra = ParseVariables(arguments.variables);
  if (!extra.ok()) return About("--chat-template-kwargs", extra.status());
  options.extra = *std::move(extra);
  return options;
}

void AddConstraintOptions(Command command, ConstraintArguments* a) {
  command.AddOption("--grammar", a->grammar, "The answer is a text of this grammar (GBNF)")
      .Check(NotEmpty);
  command.AddOption("--grammar-file", a->grammar_file, "The grammar from a file")
      .Check(NotEmpty)
      .Excludes({"--grammar"});
  command
      .AddOption("-j,--json-schema", a->json_schema,
                 "The answer is JSON that this schema accepts; {}: any JSON")
      .Check(NotEmpty)
      .Excludes({"--grammar", "--grammar-file"});
  command.AddOption("--json-schema-file", a->json_schema_file, "The schema from a file; also -jf")
      .Check(NotEmpty)
      .Excludes({"--grammar", "--grammar-file", "--json-schema"});
}

bool IsConstrained(const ConstraintArguments& a) {
  return !a.grammar.empty() || !a.grammar_file.empty() || !a.json_schema.empty() ||
         !a.json_schema_file.empty();
}

absl::StatusOr<std::shared_ptr<const Constraint>> MakeConstraint(const ConstraintArguments& a,
                                                                 const Engine& engine) {
  if (!IsConstrained(a)) return nullptr;
  const bool is_grammar = !a.grammar.empty() || !a.grammar_file.empty();
  const std::string& file = is_grammar ? a.grammar_file : a.json_schema_file;
  absl::StatusOr<std::string> text = is_grammar ? a.grammar : a.json_schema;
  if (!file.empty()) text = ReadWholeFile(file);
  if (!text.ok()) return text.status();
  auto constraint = is_grammar ? Constraint::FromGbnf(*text, engine.constraint_vocabulary())
                               : Constraint::FromJsonSchema(*text, engine.constraint_vocabulary());
  if (!constraint.ok() && !file.empty()) return About(file, constraint.status());
  return constraint;
}

void AddRerankOptions(Command command, RerankArguments* a) {
  command
      .AddOption("--rerank-head", a->head,
                 "Choose tokens by what this head (trine head train) says of the text with them: "
                 "for each token the likeliest candidates are read")
      .Check(NotEmpty)
      .ValueName("FILE")
      .Excludes({"--capture"});
  command.AddOption("--rerank-top", a->options.top, "Candidates that are read for a token")
      .Range(1, RerankOptions::kMostTop)
      .Needs("--rerank-head")
      .ShowDefault();
  command
      .AddOption("--rerank-weight", a->options.weight,
                 "What the head's log-odds are multiplied by before they are added to a "
                 "candidate's logit; below 0: what it holds for worse is preferred; 0: nothing "
                 "changes")
      .Range(-RerankOptions::kMostWeight, RerankOptions::kMostWeight)
      .Needs("--rerank-head")
      .ShowDefault();
}

absl::StatusOr<std::optional<Head>> BeginRerank(const RerankArguments& a, EngineArguments* engine) {
  if (a.head.empty()) return std::nullopt;
  auto head = ReadHead(a.head);
  if (!head.ok()) return head.status();
  engine->hidden_rows = true;
  engine->branches = engine->max_sequences * a.options.top;
  return *std::move(head);
}

absl::StatusOr<std::shared_ptr<const Rerank>> MakeRerank(const RerankArguments& a,
                                                         std::optional<Head> head,
                                                         const Engine& engine) {
  if (!head.has_value()) return nullptr;
  auto rerank = Rerank::Create(engine, *std::move(head), a.options);
  if (rerank.ok()) return rerank;
  return About(a.head, rerank.status());
}

void AddCaptureOptions(Command command, CaptureArguments* a) {
  command
      .AddOption("--capture", a->path,
                 "Record every pass into this file, for trine replay; one sequence")
      .Check(NotEmpty)
      .ValueName("FILE")
      .Excludes({"--parallel"});
  command
      .AddOption("--capture-level", a->level,
                 "What is recorded: what each layer hands on (layers), or what each op gives "
                 "(ops)")
      .OneOf({"layers", "ops"})
      .Needs("--capture")
      .ShowDefault();
  command
      .AddFlag("--capture-values", a->values,
               "Record values in full, not as hashes: the file is large, and a replay can say "
               "which element differs and by how much")
      .Needs("--capture");
}

absl::StatusOr<std::shared_ptr<CaptureRecorder>> BeginCapture(const CaptureArguments& a,
                                                              EngineArguments* engine) {
  if (a.path.empty()) return std::shared_ptr<CaptureRecorder>();
  CaptureOptions options;
  options.path = a.path;
  options.program = VersionDescription();
  options.model = EngineOptionsOf(*engine).model_path;
  options.values = a.values;
  const auto file = gguf::File::Open(options.model);
  if (!file.ok()) return file.status();
  options.model_id = ModelId(**file);
  auto created = CaptureRecorder::Create(options);
  if (!created.ok()) return created.status();
  std::shared_ptr<CaptureRecorder> recorder = *std::move(created);
  engine->taps = a.level == "ops" ? TapLevel::kOps : TapLevel::kLayers;
  engine->observer = [recorder](const Model& model, size_t stage, const Pass& pass) {
    return recorder->Ran(model, stage, pass);
  };
  return recorder;
}

}  // namespace trine
