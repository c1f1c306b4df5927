// The options of commands that generate: options for the sampler (with the names and defaults of
// other engines), chat templates, constraints, heads and captures.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/chat/chat_template.h"
#include "runtime/constraint/mask/constraint.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/rerank.h"
#include "runtime/graph/capture_file.h"
#include "runtime/sampling/sampler_options.h"
#include "tools/cli/options/command_line.h"
#include "tools/cli/options/engine_arguments.h"

namespace trine {

// The options of commands that sample.
struct SamplingArguments {
  SamplerOptions options;
  int64_t seed = -1;  // -1: a random seed each time
  std::string order;
  std::vector<std::string> logit_bias;  // "1234+1", "1234-0.5", "1234-inf"
};

void AddSamplingOptions(Command command, SamplingArguments* arguments);

// Returns the sampler's options. Draws a seed if none was given.
absl::StatusOr<SamplerOptions> MakeSamplerOptions(const SamplingArguments& arguments);

// The options of commands that use a chat template.
struct ChatArguments {
  std::string system_prompt;
  std::string chat_template;  // a file, or the template's text; "": the model's own
  std::string variables;      // JSON
};

// Adds --system-prompt, --chat-template, --chat-template-kwargs. `needs`: an option that they
// require, or "".
void AddChatOptions(Command command, ChatArguments* arguments, const std::string& needs = "");

// Adds the last two of these, for a command whose messages come from clients.
void AddChatTemplateOptions(Command command, ChatArguments* arguments,
                            const std::string& needs = "");

// Returns the source of the given template; "" means the model's own.
absl::StatusOr<std::string> ReadChatTemplate(const ChatArguments& arguments);
absl::StatusOr<ChatTemplate> LoadChatTemplate(const ChatArguments& arguments, const Engine& engine);
absl::StatusOr<ChatOptions> MakeChatOptions(const ChatArguments& arguments);

// The options that constrain output. At most one of them is set.
struct ConstraintArguments {
  std::string grammar;
  std::string grammar_file;
  std::string json_schema;
  std::string json_schema_file;
};

void AddConstraintOptions(Command command, ConstraintArguments* arguments);

bool IsConstrained(const ConstraintArguments& arguments);

// Returns the constraint; nullptr if none was asked for.
absl::StatusOr<std::shared_ptr<const Constraint>> MakeConstraint(
    const ConstraintArguments& arguments, const Engine& engine);

// The options of commands that can choose tokens with the help of a head.
struct RerankArguments {
  std::string head;  // a file; "": no reranking
  RerankOptions options;
};

void AddRerankOptions(Command command, RerankArguments* arguments);

// Reads the head and sets the engine options that it needs. Call it before the engine is loaded.
// Returns nullopt if no head is named.
absl::StatusOr<std::optional<Head>> BeginRerank(const RerankArguments& arguments,
                                                EngineArguments* engine);
// Makes the reranking with the head that BeginRerank returned. Call it after the engine is loaded.
// Returns null if no head is named.
absl::StatusOr<std::shared_ptr<const Rerank>> MakeRerank(const RerankArguments& arguments,
                                                         std::optional<Head> head,
                                                         const Engine& engine);

// The options of commands that can record their passes for trine replay.
struct CaptureArguments {
  std::string path;  // "": capture is off
  std::string level = "layers";
  bool values = false;
};

void AddCaptureOptions(Command command, CaptureArguments* arguments);

// Opens the capture and sets the engine's observer and taps. Returns null if no capture was asked
// for. Call the recorder's Finish when no pass runs any more on an engine loaded with these
// arguments.
absl::StatusOr<std::shared_ptr<CaptureRecorder>> BeginCapture(const CaptureArguments& arguments,
                                                              EngineArguments* engine);

}  // namespace trine
