// Engines and tokens in the C API.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/invalid.h"
#include "runtime/c_api/c_api_support.h"

namespace trine::c_api {
namespace {

absl::Status ReadPlacement(const trine_engine_options& given, EngineOptions* options) {
  PlacementRequest* const request = &options->placement;
  for (absl::string_view device :
       absl::StrSplit(TextOr(given.devices, ""), ',', absl::SkipWhitespace())) {
    request->devices.emplace_back(absl::StripAsciiWhitespace(device));
  }
  if (const std::string text = TextOr(given.tensor_split, ""); !text.empty()) {
    auto split = ParseSplit(text);
    if (!split.ok()) return split.status();
    request->split = *std::move(split);
  }
  if (const std::string text = TextOr(given.device_memory, ""); !text.empty()) {
    auto limits = ParseDeviceMemory(text);
    if (!limits.ok()) return Invalid("device memory: ", limits.status().message());
    request->memory_limits = *std::move(limits);
  }
  if (given.device_timeout_ms != 0) {
    constexpr uint64_t kMost = uint64_t{1} << 40;  // decades
    options->stage_limit = std::chrono::milliseconds(std::min(given.device_timeout_ms, kMost));
  }
  request->allow_degraded = (given.flags & TRINE_ENGINE_ALLOW_DEGRADED) != 0;
  if (const std::string text = TextOr(given.override_tensors, ""); !text.empty()) {
    auto overrides = ParseOverrides(text);
    if (!overrides.ok()) return overrides.status();
    request->overrides = *std::move(overrides);
  }
  request->cpu_experts =
      given.cpu_expert_layers < 0 ? PlacementRequest::kAllLayers : given.cpu_expert_layers;
  if (given.hot_experts != 0) request->hot_experts = std::max<int64_t>(given.hot_experts, 0);
  absl::Status s = ReadWord(
      "split_strategy", given.split_strategy,
      {{"auto", Strategy::kAuto}, {"memory", Strategy::kMemory}, {"balanced", Strategy::kBalanced}},
      &request->strategy);
  if (s.ok()) {
    s = ReadWord("optimize", given.optimize,
                 {{"latency", Optimize::kLatency}, {"throughput", Optimize::kThroughput}},
                 &request->optimize);
  }
  if (s.ok()) {
    s = ReadWord(
        "split_mode", given.split_mode,
        {{"layer", SplitMode::kLayer}, {"row", SplitMode::kRow}, {"none", SplitMode::kNone}},
        &request->mode);
  }
  if (s.ok()) {
    const std::string text = TextOr(given.dispatch, "");
    const auto mode = ParseDispatch(text);
    if (mode.ok()) request->dispatch = *mode;
    if (!mode.ok() && !text.empty()) s = Invalid("dispatch: ", mode.status().message());
  }
  if (s.ok() && !request->devices.empty() && !request->split.empty()) {
    s = absl::InvalidArgumentError("devices and tensor_split both say where layers go");
  }
  return s;
}

// Reads whose threads compute.
absl::Status ReadTeam(const trine_engine_options& given, TeamRequest* team) {
  const std::string name = TextOr(given.team, "");
  if (!name.empty()) {
    const auto kind = ParseTeamKind(name);
    if (!kind.ok()) return Invalid("team: ", kind.status().message());
    team->kind = *kind;
  }
  if (given.host_threads == nullptr) return absl::OkStatus();
  if (!name.empty()) return absl::InvalidArgumentError("team and host_threads are both set");
  trine_host_threads lent{};
  if (absl::Status s = ReadStruct("host_threads", given.host_threads, &lent); !s.ok()) return s;
  constexpr uint32_t kMostWorkers = 1024;
  if (lent.workers == 0 || lent.workers > kMostWorkers) {
    return Invalid("host_threads: workers is ", lent.workers, ": expected 1 to ", kMostWorkers);
  }
  if (lent.parallel_run == nullptr) return NullArgument("host_threads: parallel_run");
  team->host = HostThreads{
      .workers = lent.workers,
      .parallel_run = [lent](HostThreads::Work work, void* arg, uint32_t workers) -> int32_t {
        const InCallback inside(Callback::kThreads, nullptr);
        return lent.parallel_run(lent.self, work, arg, workers);
      }};
  return absl::OkStatus();
}

absl::StatusOr<EngineOptions> MakeOptions(const trine_engine_options& given,
                                          const std::shared_ptr<LogGate>& log) {
  if (given.model == nullptr) return NullArgument("model");
  const absl::Status flags = CheckFlags(
      given.flags, TRINE_ENGINE_NO_MMAP | TRINE_ENGINE_LOCK_MEMORY | TRINE_ENGINE_EMBEDDINGS |
                       TRINE_ENGINE_NO_PACK | TRINE_ENGINE_ALLOW_DEGRADED | TRINE_ENGINE_KV_LOSSY |
                       TRINE_ENGINE_HIDDEN_ROWS);
  if (!flags.ok()) return flags;
  EngineOptions options;
  options.model_path = given.model;
  options.kv_type_k = TextOr(given.kv_type_k, "f16");
  options.kv_type_v = TextOr(given.kv_type_v, "f16");
  if (given.context < -1) {
    return absl::InvalidArgumentError("context is negative: a count, 0, or -1 for the model's own");
  }
  // EngineOptions has 0 for the model's own context and kDefaultContext for the default.
  options.context = given.context == 0    ? EngineOptions::kDefaultContext
                    : given.context == -1 ? 0
                                          : given.context;
  if (given.batch_tokens != 0) options.batch_tokens = given.batch_tokens;
  options.embeddings = (given.flags & TRINE_ENGINE_EMBEDDINGS) != 0;
  options.hidden_rows = (given.flags & TRINE_ENGINE_HIDDEN_ROWS) != 0;
  options.branches = given.branches;
  if (options.embeddings) options.max_sequences = EngineOptions::kDefaultTexts;
  if (given.max_sequences != 0) options.max_sequences = given.max_sequences;
  options.threads = given.threads;
  if (absl::Status s = ReadTeam(given, &options.team); !s.ok()) return s;
  options.use_mmap = (given.flags & TRINE_ENGINE_NO_MMAP) == 0;
  options.lock_memory = (given.flags & TRINE_ENGINE_LOCK_MEMORY) != 0;
  options.pack = (given.flags & TRINE_ENGINE_NO_PACK) == 0;
  options.pack_cache = given.pack_cache != nullptr;
  options.pack_cache_folder = TextOr(given.pack_cache, "");
  options.kv_store = TextOr(given.kv_store, "");
  if (given.kv_store_bytes != 0) options.kv_store_bytes = given.kv_store_bytes;
  options.kv_host_bytes = given.kv_host_bytes;
  options.kv_store_form = TextOr(given.kv_store_type, "raw");
  options.kv_lossy = (given.flags & TRINE_ENGINE_KV_LOSSY) != 0;
  options.faults = TextOr(given.faults, "");
  options.trace = TextOr(given.trace, "");
  options.expert_stats = TextOr(given.expert_stats, "");
  if (absl::Status s = ReadPlacement(given, &options); !s.ok()) return s;
  if (absl::Status read = ReadPluginMembers(given, &options.plugins); !read.ok()) return read;
  if (given.on_progress != nullptr) {
    options.progress = [call = given.on_progress, user = given.user](double fraction) {
      const InCallback inside(Callback::kOther, nullptr);
      return call(user, fraction) == 0;
    };
  }
  if (given.on_log != nullptr) {
    options.log = [call = given.on_log, user = given.user, log](uint32_t level,
                                                                const std::string& message) {
      log->Pass([&] { call(user, level, message.c_str()); });
    };
  }
  return options;
}

}  // namespace
}  // namespace trine::c_api

extern "C" {

using namespace trine::c_api;  // NOLINT: this file is that namespace's other side

int32_t trine_engine_open(const trine_engine_options* given, trine_engine** engine,
                          trine_failure* why) {
  return Guarded(why, [&]() -> absl::Status {
    if (engine == nullptr) return NullArgument("engine");
    *engine = nullptr;
    if (given == nullptr) return NullArgument("options");
    trine_engine_options read{};
    if (absl::Status s = ReadStruct("options", given, &read); !s.ok()) return s;
    if (absl::Status s = InCallback::MayCall(); !s.ok()) return s;
    const auto log = std::make_shared<LogGate>();
    auto options = MakeOptions(read, log);
    if (!options.ok()) return options.status();
    auto object = std::make_shared<EngineObject>();
    object->log = log;
    auto loaded = trine::Engine::Load(*options);
    if (!loaded.ok()) return loaded.status();
    object->engine = *std::move(loaded);
    *engine = NewHandle(std::move(object));
    return absl::OkStatus();
  });
}

void trine_engine_close(trine_engine* engine) { Close(engine); }

int32_t trine_engine_describe(const trine_engine* engine, trine_engine_info* out) {
  return OnEngine(engine, nullptr, [&](const trine::Engine& on) -> absl::Status {
    if (out == nullptr) return NullArgument("info");
    if (out->struct_size < sizeof(uint32_t)) return BadStruct("info");
    const std::shared_ptr<const trine::Model> model = on.model();
    const trine::ModelConfig& config = on.config();
    trine_engine_info info{};
    info.threads = on.threads();
    info.n_vocab = config.n_vocab;
    info.n_layers = config.n_layers;
    info.n_embd = config.n_embd;
    info.context = on.context();
    info.context_train = config.n_ctx_train;
    info.weight_bytes = on.file().tensor_bytes();
    info.kv_bytes = model->kv_bytes();
    info.scratch_bytes = model->scratch_bytes();
    CopyText(config.architecture, info.architecture);
    CopyText(config.name, info.name);
    CopyText(on.team_name(), info.team);
    WriteStruct(info, out);
    return absl::OkStatus();
  });
}

int32_t trine_tokenize(const trine_engine* engine, const char* text, size_t bytes, uint32_t flags,
                       int32_t* tokens, size_t capacity, size_t* count, trine_failure* why) {
  return OnEngine(engine, why, [&](const trine::Engine& on) -> absl::Status {
    if (text == nullptr && bytes != 0) return NullArgument("text");
    if (absl::Status s = CheckFlags(flags, kTokenizeFlags); !s.ok()) return s;
    const auto ids = on.tokenizer()->Encode(std::string_view(text == nullptr ? "" : text, bytes),
                                            EncodingOf(flags));
    if (!ids.ok()) return ids.status();
    return CopyOut(ids->data(), ids->size(), tokens, capacity, count);
  });
}

int32_t trine_detokenize(const trine_engine* engine, const int32_t* tokens, size_t count,
                         char* text, size_t capacity, size_t* bytes, trine_failure* why) {
  return OnEngine(engine, why, [&](const trine::Engine& on) -> absl::Status {
    if (tokens == nullptr && count != 0) return NullArgument("tokens");
    const int32_t n_vocab = on.tokenizer()->vocab_size();
    for (size_t i = 0; i < count; ++i) {
      if (tokens[i] < 0 || tokens[i] >= n_vocab) {
        return trine::Invalid("token ", tokens[i], " is not in the vocabulary of ", n_vocab);
      }
    }
    const std::string decoded = on.tokenizer()->Decode(absl::Span<const int32_t>(tokens, count));
    return CopyOut(decoded.data(), decoded.size(), text, capacity, bytes);
  });
}

int32_t trine_token_is_end(const trine_engine* engine, int32_t token) {
  bool is_end = false;
  OnEngine(engine, nullptr, [&](const trine::Engine& on) {
    is_end = on.tokenizer()->IsEndOfGeneration(token);
    return absl::OkStatus();
  });
  return is_end ? 1 : 0;
}

}  // extern "C"
