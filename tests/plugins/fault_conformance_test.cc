// Runs the conformance kit through the fault wrapper, with faults that never happen: every promise
// of a plugin must hold through the wrapper, too.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "plugins/conformance/kit.h"
#include "plugins/fault/faulty_handles.h"
#include "plugins/fault/injector.h"
#include "plugins/library.h"

namespace trine::conformance {
namespace {

// The ABI's entry points take no context, so the wrapped objects are global.
std::unique_ptr<fault::Injector> g_injector;
trine_plugin g_real, g_table;

trine_status OpenWrapped(const trine_host* host, const char* options, trine_backend** out,
                         trine_error* err) {
  trine_backend* backend = nullptr;
  const trine_status status = g_real.open(host, options, &backend, err);
  if (status != TRINE_OK) return status;
  const std::vector<fault::DeviceNames> names(g_real.device_count(backend), {"cpu", "CPU"});
  *out = g_injector->Wrap(g_real, host, backend, names).handle;
  return TRINE_OK;
}

const trine_plugin* Query(uint32_t host_abi_version) {
  return host_abi_version >> 16 == TRINE_ABI_MAJOR ? &g_table : nullptr;
}

class Collector : public Sink {
 public:
  void Begin(const std::string&) override {}
  void End(const Finding& f) override {
    if (f.outcome == Outcome::kPass) ++passed;
    if (f.outcome == Outcome::kSkip) ++skipped;
    EXPECT_NE(f.outcome, Outcome::kFail) << f.check << ": " << f.detail;
  }
  int passed = 0, skipped = 0;
};

struct Case {
  const char* name;
  const char* path;
  const char* options;
  std::vector<std::string> filters;  // of checks
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> Cases() {
  std::vector<Case> cases = {{"Cpu", TRINE_CPU_PLUGIN, "", {""}},
                             {"Example", TRINE_EXAMPLE_PLUGIN, "", {""}}};
#ifdef TRINE_ASYNC_PLUGIN
  // Work is done as late as possible, on two devices. Arithmetic is not tested here.
  cases.push_back({"Async",
                   TRINE_ASYNC_PLUGIN,
                   "pace=random;devices=2",
                   {"copies/", "memory/", "timelines/", "submissions/", "life-cycle/"}});
  // Takes half a minute. The other plugins go through many cycles every time.
  if (std::getenv("TRINE_LONG") != nullptr) cases.back().filters.push_back("cycles/");
#endif
  return cases;
}

class FaultConformanceTest : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Plugins, FaultConformanceTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// The same checks pass and are skipped with the wrapper and without.
TEST_P(FaultConformanceTest, TheKitPassesThroughTheWrapper) {
  auto library = PluginLibrary::Load(GetParam().path);
  ASSERT_TRUE(library.ok()) << library.status();
  g_injector = std::make_unique<fault::Injector>(*fault::FaultSpec::Parse(
      "*:lost@run=1000000000;*:garbage@run=1000000000;*:oom@random,rate=0.000000000001"));
  g_real = (*library)->table();
  g_table = fault::WrapTable(g_real);
  g_table.open = OpenWrapped;
  KitOptions options;
  options.create_destroy_cycles = 100;
  options.workers = 2;
  options.options = GetParam().options;
  Collector bare, wrapped;
  for (const std::string& filter : GetParam().filters) {
    options.filter = filter;
    RunKit((*library)->query(), options, bare);
    RunKit(Query, options, wrapped);
  }
  g_injector.reset();
  EXPECT_GT(wrapped.passed, 20);
  EXPECT_EQ(wrapped.passed, bare.passed);
  EXPECT_EQ(wrapped.skipped, bare.skipped);
}

}  // namespace
}  // namespace trine::conformance
