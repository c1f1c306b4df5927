// Section load: the exported function and the table it returns. Section life-cycle: opening,
// devices, and structs of other sizes than the plugin's.
#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/cases/graph_spec.h"
#include "plugins/conformance/checks/sections.h"
#include "plugins/library.h"

namespace trine::conformance {
namespace {

// An open backend without an open device.
class OpenBackend {
 public:
  OpenBackend(Trial& trial, Runner& runner, const trine_plugin& table, const std::string& options)
      : runner_(runner), table_(table), host_(1) {
    answer_ = trial.Call("open", [&](trine_error* err) {
      return table.open(host_.get(), options.c_str(), &backend_, err);
    });
  }
  ~OpenBackend() {
    if (!answer_.Ok() || backend_ == nullptr) return;
    try {
      table_.close(backend_);
    } catch (...) {
      runner_.NoteThrown("close");
    }
  }
  const Answer& answer() const { return answer_; }
  trine_backend* get() const { return backend_; }

 private:
  Runner& runner_;
  const trine_plugin& table_;
  ObservingHost host_;
  trine_backend* backend_ = nullptr;
  Answer answer_;
};

Answer Info(Trial& trial, const trine_plugin& table, trine_backend* backend, uint32_t index,
            trine_device_info* info) {
  return trial.Call("device_info",
                    [&](trine_error* err) { return table.device_info(backend, index, info, err); });
}

// `why_not` may be null.
bool IsUsable(Trial& trial, const trine_plugin& table, trine_backend* backend, uint32_t index,
              std::string* why_not) {
  trine_device_info info{};
  info.struct_size = sizeof(info);
  const Answer answer = Info(trial, table, backend, index, &info);
  const bool usable = answer.Ok() && (info.flags & TRINE_DEVICE_UNUSABLE) == 0;
  if (!usable && why_not != nullptr) {
    *why_not = answer.Ok() ? std::string(info.reason, strnlen(info.reason, sizeof(info.reason)))
                           : absl::StrCat("device_info: ", answer.Text());
  }
  return usable;
}

template <size_t N>
void CheckText(Trial& trial, const char (&text)[N], const char* member) {
  trial.Expect(std::memchr(text, 0, N) != nullptr,
               absl::StrCat("device_info: ", member, " has no terminating NUL"));
}

bool IsPciId(const char* text) {  // "0000:c1:00.0"
  if (std::strlen(text) != 12) return false;
  for (int i = 0; i < 12; ++i) {
    const char c = text[i];
    const bool right = i == 4 || i == 7 ? c == ':' : i == 10 ? c == '.' : std::isxdigit(c) != 0;
    if (!right) return false;
  }
  return true;
}

void CheckInfo(Trial& trial, const trine_device_info& info) {
  CheckText(trial, info.pci_id, "pci_id");
  CheckText(trial, info.name, "name");
  CheckText(trial, info.arch, "arch");
  CheckText(trial, info.driver, "driver");
  CheckText(trial, info.memory_pool, "memory_pool");
  CheckText(trial, info.bandwidth_domain, "bandwidth_domain");
  CheckText(trial, info.reason, "reason");
  CheckText(trial, info.import_refusal, "import_refusal");
  if (trial.failed()) return;
  trial.Expect(info.tier >= TRINE_TIER_CPU && info.tier <= TRINE_TIER_OTHER,
               absl::StrCat("device_info: tier ", info.tier, " is none"));
  trial.Expect(info.name[0] != '\0', "device_info: the device has no name");
  trial.Expect(info.pci_id[0] == '\0' || IsPciId(info.pci_id),
               absl::StrCat("device_info: pci_id \"", info.pci_id, "\" is not like 0000:c1:00.0"));
  if ((info.flags & TRINE_DEVICE_UNUSABLE) != 0) {
    trial.Expect(info.reason[0] != '\0', "device_info: unusable without a reason");
    return;
  }
  trial.Expect(info.numerics == TRINE_NUMERICS_EXACT || info.numerics == TRINE_NUMERICS_FAST,
               absl::StrCat("device_info: numerics ", info.numerics, " is neither mode"));
  trial.Expect(info.memory_total > 0, "device_info: memory_total is 0");
  trial.Expect(info.memory_free <= info.memory_total,
               "device_info: more memory is free than there is");
  trial.Expect(
      std::has_single_bit(info.buffer_alignment),
      absl::StrCat("device_info: buffer_alignment ", info.buffer_alignment, " is no power of two"));
  trial.Expect(
      info.import_alignment == 0 || std::has_single_bit(info.import_alignment),
      absl::StrCat("device_info: import_alignment ", info.import_alignment, " is no power of two"));
  trial.Expect(info.import_alignment != 0 || info.imports == 0,
               "device_info: imports says what is imported, but import_alignment is 0");
  trial.Expect(info.imports == 0 || (info.imports & TRINE_IMPORTS_TRIED) != 0,
               "device_info: imports says what is imported, but not that it was TRIED");
  constexpr uint32_t kImports =
      TRINE_IMPORTS_TRIED | TRINE_IMPORTS_WRITABLE | TRINE_IMPORTS_READ_ONLY;
  trial.Expect((info.imports & ~kImports) == 0,
               absl::StrCat("device_info: imports ", info.imports, " has bits that mean nothing"));
  trial.Expect(info.memory_pool[0] != '\0', "device_info: memory_pool is empty");
  trial.Expect(info.bandwidth_domain[0] != '\0', "device_info: bandwidth_domain is empty");
}

// Expects device_info to write at most `size` bytes, and to leave members that it does not know
// unchanged.
void CheckInfoOfSize(Trial& trial, const trine_plugin& table, trine_backend* backend, size_t size) {
  Bytes room(std::max(size, sizeof(trine_device_info)) + 256, kGarbage);
  auto* info = reinterpret_cast<trine_device_info*>(room.data());
  std::memset(room.data(), 0, size);
  info->struct_size = static_cast<uint32_t>(size);
  const Answer answer = Info(trial, table, backend, 0, info);
  if (!trial.ExpectOk(answer, absl::StrCat("device_info with struct_size ", size))) return;
  trial.Expect(info->struct_size == size,
               absl::StrCat("device_info changed the caller's struct_size from ", size, " to ",
                            info->struct_size));
  for (size_t i = size; i < room.size(); ++i) {
    if (room[i] == kGarbage) continue;
    trial.Fail(
        absl::StrCat("device_info wrote byte ", i, " of a struct whose struct_size is ", size));
    return;
  }
  for (size_t i = sizeof(trine_device_info); i < size; ++i) {
    if (room[i] == std::byte{0}) continue;
    trial.Fail(absl::StrCat("device_info wrote byte ", i, ", beyond every member it knows"));
    return;
  }
}

template <class Ask>
const trine_plugin* Asked(Trial& trial, Ask ask) {
  try {
    return ask();
  } catch (...) {
    trial.FailThrown("trine_plugin_query");
    return nullptr;
  }
}

const trine_plugin* Query(Trial& trial, trine_plugin_query_fn query, uint32_t version) {
  return Asked(trial, [&] { return query(version); });
}

// A table compiled against this ABI version must have its size.
void CheckTableSize(Trial& trial, const trine_plugin& table) {
  if (table.abi_version == TRINE_ABI_VERSION) {
    trial.Expect(
        table.struct_size <= sizeof(trine_plugin),
        absl::StrCat("struct_size is ", table.struct_size, ", but a table of this ABI has ",
                     sizeof(trine_plugin), " bytes: it must be sizeof(trine_plugin)"));
  } else if (table.abi_version < TRINE_ABI_VERSION) {
    trial.Expect(table.struct_size <= sizeof(trine_plugin),
                 "struct_size is larger than that of a newer ABI");
  }
}

}  // namespace

Survey RunLifeCycleChecks(Runner& runner, const trine_plugin& table, const KitOptions& options) {
  const auto run = [&](const char* name, auto body) {
    runner.Run(absl::StrCat("life-cycle/", name), [&](Trial& trial) {
      const OpenBackend backend(trial, runner, table, options.options);
      if (trial.ExpectOk(backend.answer(), "open")) body(trial, backend.get());
    });
  };
  run("open", [&](Trial& trial, trine_backend* backend) {
    trial.Expect(backend != nullptr, "open returned OK and no backend");
  });
  if (runner.failed("life-cycle/open")) return {};  // no other check could run

  runner.Run("life-cycle/unknown-option", [&](Trial& trial) {
    const OpenBackend backend(trial, runner, table, "no-such-option-1=7");
    if (!trial.ExpectRefused(backend.answer(), "open with the unknown option no-such-option-1")) {
      return;
    }
    trial.Expect(backend.answer().message.find("no-such-option-1") != std::string::npos,
                 absl::StrCat("open refused an unknown option without naming it: ",
                              backend.answer().message));
  });
  run("two-backends", [&](Trial& trial, trine_backend* first) {
    const OpenBackend second(trial, runner, table, options.options);
    trial.ExpectOk(second.answer(), "a second open");
    trial.Expect(second.get() != first, "two opens gave the same backend");
  });
  run("devices", [&](Trial& trial, trine_backend* backend) {
    const uint32_t count = table.device_count(backend);
    trial.Expect(count == table.device_count(backend), "device_count changed between two calls");
    if (!trial.Expect(count <= 256, absl::StrCat("device_count is ", count))) return;
    for (uint32_t i = 0; i < count; ++i) {
      trine_device_info info{};
      info.struct_size = sizeof(info);
      const Answer answer = Info(trial, table, backend, i, &info);
      if (trial.ExpectOk(answer, absl::StrCat("device_info ", i))) CheckInfo(trial, info);
    }
    trial.Note(absl::StrCat(count, count == 1 ? " device" : " devices"));
  });
  run("device-beyond-last", [&](Trial& trial, trine_backend* backend) {
    const uint32_t count = table.device_count(backend);
    for (uint32_t index : {count, 0xffffffffu}) {
      trine_device_info info{};
      info.struct_size = sizeof(info);
      trial.ExpectRefused(Info(trial, table, backend, index, &info),
                          absl::StrCat("device_info ", index),
                          {TRINE_NOT_FOUND, TRINE_INVALID_ARGUMENT, TRINE_OUT_OF_RANGE});
      trine_device* device = nullptr;
      const Answer answer = trial.Call("device_open", [&](trine_error* err) {
        return table.device_open(backend, index, &device, err);
      });
      trial.ExpectRefused(answer, absl::StrCat("device_open ", index),
                          {TRINE_NOT_FOUND, TRINE_INVALID_ARGUMENT, TRINE_OUT_OF_RANGE});
      // Every fallible call accepts a null error, also when it fails.
      trial.Call("device_open",
                 [&](trine_error*) { return table.device_open(backend, index, &device, nullptr); });
    }
  });
  run("older-and-newer-structs", [&](Trial& trial, trine_backend* backend) {
    if (table.device_count(backend) == 0) return trial.Skip("there is no device");
    for (size_t size : {size_t{4}, size_t{8}, offsetof(trine_device_info, memory_free),
                        offsetof(trine_device_info, name) + 10, sizeof(trine_device_info),
                        sizeof(trine_device_info) + 128}) {
      CheckInfoOfSize(trial, table, backend, size);
    }
  });
  run("open-devices", [&](Trial& trial, trine_backend* backend) {
    for (uint32_t i = 0; i < table.device_count(backend); ++i) {
      trine_device* device = nullptr;
      const Answer answer = trial.Call("device_open", [&](trine_error* err) {
        return table.device_open(backend, i, &device, err);
      });
      if (!IsUsable(trial, table, backend, i, nullptr)) {
        trial.ExpectRefused(answer, absl::StrCat("device_open of unusable device ", i));
      } else if (trial.ExpectOk(answer, absl::StrCat("device_open ", i))) {
        table.device_close(device);
      }
    }
  });

  // Finds the devices to test, also when the checks above are filtered out.
  QuietSink quiet;
  Trial trial(&quiet);
  const OpenBackend backend(trial, runner, table, options.options);
  Survey survey;
  survey.opened = backend.answer();
  if (!survey.opened.Ok() || backend.get() == nullptr) return survey;
  for (uint32_t i = 0; i < std::min(table.device_count(backend.get()), 256u); ++i) {
    if (IsUsable(trial, table, backend.get(), i, &survey.unusable)) survey.usable.push_back(i);
  }
  return survey;
}

std::optional<trine_plugin> RunLoadChecks(Runner& runner, trine_plugin_query_fn query) {
  runner.Run("load/query", [&](Trial& trial) {
    const trine_plugin* first = Query(trial, query, TRINE_ABI_VERSION);
    trial.Expect(first == Query(trial, query, TRINE_ABI_VERSION),
                 "trine_plugin_query returned two different tables");
  });
  runner.Run("load/newer-host", [&](Trial& trial) {
    trial.Expect(Query(trial, query, TRINE_ABI_VERSION + 1) != nullptr,
                 "a host with a newer minor version is turned away");
  });
  runner.Run("load/other-major", [&](Trial& trial) {
    for (uint32_t version : {0u, (TRINE_ABI_MAJOR + 1) << 16, 0xffff0000u}) {
      trial.Expect(Query(trial, query, version) == nullptr,
                   absl::StrCat("trine_plugin_query returned a table to a host of ABI ",
                                version >> 16, ".0"));
    }
  });
  runner.Run("load/table", [&](Trial& trial) {
    const trine_plugin* table = Asked(trial, [&] { return QueryTable(query); });
    const absl::StatusOr<trine_plugin> adopted = AdoptTable(table);
    if (!trial.Expect(adopted.ok(), std::string(adopted.status().message()))) return;
    CheckTableSize(trial, *table);
    trial.Expect(adopted->version[0] != '\0', "its version text is empty");
    trial.Expect((adopted->layout_list == nullptr) == (adopted->layout_convert == nullptr),
                 "layout_list and layout_convert come together or not at all");
  });
  // Every other check needs the table, also when the checks above are filtered out or done.
  QuietSink sink;
  Trial quiet(&sink);
  const absl::StatusOr<trine_plugin> adopted = AdoptTable(Query(quiet, query, TRINE_ABI_VERSION));
  return adopted.ok() ? std::optional<trine_plugin>(*adopted) : std::nullopt;
}

}  // namespace trine::conformance
