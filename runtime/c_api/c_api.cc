// The C API over the C++ runtime. No exception reaches the caller.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "runtime/base/machine_report.h"
#include "runtime/base/version.h"
#include "runtime/c_api/c_api_support.h"
#include "runtime/chat/chat_template.h"
#include "runtime/engine/set_tokens.h"
#include "trine/backend.h"
#include "trine/trine.h"

namespace trine::c_api {
namespace {

char* CopyText(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

absl::StatusOr<trine_chat_options> ReadOptions(const trine_chat_options* given) {
  trine_chat_options read{};
  if (absl::Status s = ReadStruct("options", given, &read); !s.ok()) return s;
  const absl::Status flags =
      CheckFlags(read.flags, TRINE_CHAT_NO_GENERATION_PROMPT | TRINE_CHAT_REPLACE);
  if (!flags.ok()) return flags;
  return read;
}

absl::StatusOr<jinja::Text> Render(const Engine& engine, const char* messages, size_t bytes,
                                   const trine_chat_options& options) {
  if (messages == nullptr) return NullArgument("messages");
  const auto parsed = ParseMessages(std::string_view(messages, bytes));
  if (!parsed.ok()) return parsed.status();
  ChatOptions chat;
  chat.add_generation_prompt = (options.flags & TRINE_CHAT_NO_GENERATION_PROMPT) == 0;
  if (options.tools != nullptr) {
    auto tools = ParseTools(options.tools);
    if (!tools.ok()) return tools.status();
    chat.tools = *std::move(tools);
  }
  if (options.variables != nullptr) {
    auto extra = ParseVariables(options.variables);
    if (!extra.ok()) return extra.status();
    chat.extra = *std::move(extra);
  }
  const Tokenizer& tokenizer = *engine.tokenizer();
  const auto chosen = options.chat_template != nullptr
                          ? ChatTemplate::FromSource(options.chat_template, tokenizer)
                          : ChatTemplate::FromModel(engine.file().metadata(), tokenizer);
  if (!chosen.ok()) return chosen.status();
  return chosen->Render(*parsed, chat);
}

}  // namespace
}  // namespace trine::c_api

extern "C" {

using namespace trine::c_api;  // NOLINT: this file is that namespace's other side

const char* trine_version(void) { return trine::Version(); }
uint32_t trine_backend_abi_version(void) { return TRINE_ABI_VERSION; }
uint32_t trine_numerics_version(void) { return TRINE_NUMERICS_VERSION; }

int32_t trine_detect(const trine_detect_options* given, char** json) {
  if (json == nullptr) return TRINE_INVALID_ARGUMENT;
  *json = nullptr;
  try {
    trine_detect_options options{};
    if (!trine::c_api::ReadStruct("options", given, &options).ok()) return TRINE_INVALID_ARGUMENT;
    trine::MachineOptions machine;
    if (options.root != nullptr) machine.root = options.root;
    if (!trine::c_api::ReadPluginMembers(options, &machine.registry).ok()) {
      return TRINE_INVALID_ARGUMENT;
    }
    trine::Inventory inventory = trine::DescribeMachine(machine);
    if (const std::string& unused = inventory.registry.unused_options; !unused.empty()) {
      inventory.registry.notes.push_back(unused);
    }
    *json = CopyText(trine::MachineReportText(inventory));
    return TRINE_OK;
  } catch (const std::bad_alloc&) {
    return TRINE_RESOURCE_EXHAUSTED;
  } catch (...) {
    return TRINE_INTERNAL;
  }
}

void trine_string_free(char* text) { std::free(text); }

// Devices: what they do and what happens to them.

int32_t trine_engine_segment(const trine_engine* engine, size_t index, trine_segment_info* out) {
  return OnEngine(engine, nullptr, [&](const trine::Engine& on) -> absl::Status {
    if (out == nullptr) return NullArgument("info");
    if (!PlausibleSize(*out)) return BadStruct("info");
    const std::vector<trine::SegmentCounters> all = on.segments();
    if (index >= all.size()) return absl::OutOfRangeError("there are fewer segments");
    const trine::SegmentCounters& segment = all[index];
    trine_segment_info info{};
    info.placement = static_cast<uint32_t>(segment.placement);
    CopyText(segment.device_name, info.device);
    info.first_layer = segment.begin;
    info.end_layer = segment.end;
    info.passes = segment.stage.jobs;
    info.tokens = segment.tokens;
    info.busy_ns = segment.stage.busy_ns;
    info.waiting_ns = segment.stage.waiting_ns;
    info.blocked_ns = segment.stage.blocked_ns;
    info.busy_ratio = segment.busy_ratio();
    info.bytes_in = segment.bytes_in;
    info.bytes_out = segment.bytes_out;
    info.detours = segment.detours;
    CopyText(segment.helper, info.helper);
    WriteStruct(info, out);
    return absl::OkStatus();
  });
}

int32_t trine_engine_lost_device(const trine_engine* engine, size_t index, trine_lost_device* out) {
  return OnEngine(engine, nullptr, [&](const trine::Engine& on) -> absl::Status {
    if (out == nullptr) return NullArgument("lost");
    if (!PlausibleSize(*out)) return BadStruct("lost");
    const std::vector<trine::LostDevice> all = on.lost_devices();
    if (index >= all.size()) return absl::OutOfRangeError("fewer devices are lost");
    const auto ago = std::chrono::steady_clock::now() - all[index].since;
    trine_lost_device lost{};
    CopyText(all[index].name, lost.device);
    CopyText(trine::Printable(all[index].reason), lost.reason);
    lost.lost_ms =
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(ago).count());
    WriteStruct(lost, out);
    return absl::OkStatus();
  });
}

int32_t trine_engine_readmit(trine_engine* engine, const char* device, trine_failure* why) {
  return OnEngine(engine, why, [&](trine::Engine& on) -> absl::Status {
    if (absl::Status s = InCallback::MayReadmit(); !s.ok()) return s;
    return on.Readmit(std::string(device == nullptr ? "" : device));
  });
}

int32_t trine_engine_write_trace(trine_engine* engine, trine_failure* why) {
  return OnEngine(engine, why, [](trine::Engine& on) { return on.WriteTrace(); });
}

// Chat templates.

int32_t trine_chat_render(const trine_engine* engine, const char* messages, size_t bytes,
                          const trine_chat_options* options, char* text, size_t capacity,
                          size_t* text_bytes, trine_failure* why) {
  return OnEngine(engine, why, [&](const trine::Engine& on) -> absl::Status {
    const auto read = ReadOptions(options);
    if (!read.ok()) return read.status();
    const auto rendered = Render(on, messages, bytes, *read);
    if (!rendered.ok()) return rendered.status();
    return CopyOut(rendered->bytes().data(), rendered->size(), text, capacity, text_bytes);
  });
}

int32_t trine_session_append_chat(trine_session* session, const char* messages, size_t bytes,
                                  const trine_chat_options* options, trine_failure* why) {
  return OnSession(session, why, [&](trine::Session& to) -> absl::Status {
    const auto read = ReadOptions(options);
    if (!read.ok()) return read.status();
    const trine::Engine& engine = to.engine();
    const auto rendered = Render(engine, messages, bytes, *read);
    if (!rendered.ok()) return rendered.status();
    const bool replace = (read->flags & TRINE_CHAT_REPLACE) != 0;
    const bool at_start = replace || to.sequence().size() == 0;
    const auto tokens = trine::EncodeChat(*engine.tokenizer(), *rendered, at_start);
    if (!tokens.ok()) return tokens.status();
    return replace ? trine::SetTokens(&to, *tokens) : to.Append(*tokens);
  });
}

}  // extern "C"
