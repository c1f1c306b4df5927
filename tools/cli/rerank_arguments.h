// The options of commands that can choose tokens by what a head says of them.
#ifndef TRINE_TOOLS_CLI_RERANK_ARGUMENTS_H_
#define TRINE_TOOLS_CLI_RERANK_ARGUMENTS_H_

#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "runtime/rerank.h"
#include "tools/cli/engine_arguments.h"

namespace trine {

struct RerankArguments {
  std::string head;  // a file; "": no reranking
  RerankOptions options;
};

void AddRerankOptions(CLI::App* command, RerankArguments* arguments);

// Before the engine is loaded: reads the head, and asks the engine for what it needs. No value
// where none is named.
absl::StatusOr<std::optional<Head>> BeginRerank(const RerankArguments& arguments,
                                                EngineArguments* engine);
// When it is; null where none is named.
absl::StatusOr<std::shared_ptr<const Rerank>> MakeRerank(const RerankArguments& arguments,
                                                         std::optional<Head> head,
                                                         const Engine& engine);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_RERANK_ARGUMENTS_H_
