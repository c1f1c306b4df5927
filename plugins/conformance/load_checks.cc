// load: the exported function and the table it returns.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/sections.h"
#include "plugins/plugin_table.h"

namespace trine::conformance {
namespace {

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

// A table compiled against this very version has this very size.
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
  // The table is needed by every other check, also when those above are filtered out or done.
  QuietSink sink;
  Trial quiet(&sink);
  const absl::StatusOr<trine_plugin> adopted = AdoptTable(Query(quiet, query, TRINE_ABI_VERSION));
  return adopted.ok() ? std::optional<trine_plugin>(*adopted) : std::nullopt;
}

}  // namespace trine::conformance
