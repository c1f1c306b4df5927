#include <cstring>
#include <stdexcept>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/library.h"

namespace trine {
namespace {

using ::testing::HasSubstr;

// Returns a valid table, whose functions must not be called.
trine_plugin SoundTable() {
  trine_plugin t{};
  t.struct_size = sizeof(t);
  t.abi_version = TRINE_ABI_VERSION;
  t.numerics_version = TRINE_NUMERICS_VERSION;
  t.sanitizer = TRINE_SANITIZER_HERE;
  t.name = "sound";
  t.version = "1";
  char* functions = reinterpret_cast<char*>(&t.open);
  const auto some = reinterpret_cast<void*>(&std::abort);
  for (size_t at = offsetof(trine_plugin, open); at < sizeof(t); at += sizeof(void*)) {
    std::memcpy(functions + (at - offsetof(trine_plugin, open)), &some, sizeof(some));
  }
  return t;
}

std::string Refusal(const trine_plugin& table) {
  const auto adopted = AdoptTable(&table);
  return adopted.ok() ? "" : std::string(adopted.status().message());
}

TEST(PluginTableTest, AdoptsASoundTable) {
  const trine_plugin table = SoundTable();
  const auto adopted = AdoptTable(&table);
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_STREQ(adopted->name, "sound");
  EXPECT_NE(adopted->layout_convert, nullptr);
}

TEST(PluginTableTest, OlderTableReadsAsShorter) {
  trine_plugin table = SoundTable();
  table.struct_size = TRINE_PLUGIN_REQUIRED_SIZE;  // the host must not read beyond this size
  const auto adopted = AdoptTable(&table);
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_EQ(adopted->buffer_host_ptr, nullptr);
  EXPECT_EQ(adopted->layout_convert, nullptr);
  EXPECT_NE(adopted->timeline_query, nullptr);
}

TEST(PluginTableTest, NewerTableIsCutToOurSize) {
  struct {
    trine_plugin known = SoundTable();
    void* unknown[4] = {};
  } newer;
  newer.known.struct_size = sizeof(newer);
  newer.known.abi_version = TRINE_ABI_VERSION + 1;  // a later minor
  const auto adopted = AdoptTable(&newer.known);
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_EQ(adopted->abi_version, TRINE_ABI_VERSION + 1);
  EXPECT_NE(adopted->layout_convert, nullptr);
}

// Plugins from before 1.0 have no table for this host. Their own table tells their version.
TEST(PluginTableTest, RefusesPluginsFromBeforeOneByTheirVersion) {
  const trine_plugin_query_fn older = [](uint32_t host) -> const trine_plugin* {
    static trine_plugin table;
    table = SoundTable();
    table.abi_version = 12;
    return host >> 16 == 0 ? &table : nullptr;
  };
  ASSERT_EQ(older(TRINE_ABI_VERSION), nullptr);
  ASSERT_NE(QueryTable(older), nullptr);
  EXPECT_EQ(Refusal(*QueryTable(older)),
            "it was built for ABI 0.12, this program speaks 1.0: install a version of the plugin "
            "that was built for ABI 1.x");
  const trine_plugin_query_fn nobodys = [](uint32_t) -> const trine_plugin* { return nullptr; };
  EXPECT_EQ(QueryTable(nobodys), nullptr);
}

TEST(PluginTableTest, QueriesAsTheHostItIs) {
  const trine_plugin_query_fn sound = [](uint32_t host) -> const trine_plugin* {
    static trine_plugin table;
    table = SoundTable();
    return host == TRINE_ABI_VERSION ? &table : nullptr;
  };
  ASSERT_NE(QueryTable(sound), nullptr);
  EXPECT_EQ(Refusal(*QueryTable(sound)), "");
}

TEST(PluginTableTest, RefusesWithAReason) {
  EXPECT_THAT(std::string(AdoptTable(nullptr).status().message()), HasSubstr("does not serve ABI"));
  trine_plugin t = SoundTable();
  t.abi_version = 7u << 16;
  EXPECT_THAT(Refusal(t), HasSubstr("built for ABI 7.0"));
  t = SoundTable();
  t.struct_size = TRINE_PLUGIN_REQUIRED_SIZE - 8;
  EXPECT_THAT(Refusal(t), HasSubstr("function table has"));
  t.struct_size = 0;
  EXPECT_THAT(Refusal(t), HasSubstr("has 0 bytes"));
  for (uint32_t lie : {0xffffffffu, 1u << 20, uint32_t{sizeof(trine_plugin)} + 3}) {
    t.struct_size = lie;
    EXPECT_THAT(Refusal(t), HasSubstr("claims")) << lie;
  }
  t = SoundTable();
  t.sanitizer = TRINE_SANITIZER_HERE == TRINE_SANITIZER_THREAD ? TRINE_SANITIZER_ADDRESS
                                                               : TRINE_SANITIZER_THREAD;
  EXPECT_THAT(Refusal(t), HasSubstr("Sanitizer"));
  if (TRINE_SANITIZER_HERE == TRINE_SANITIZER_NONE) {
    EXPECT_THAT(Refusal(t), HasSubstr("load the sanitizer's runtime first (LD_PRELOAD"));
  }
  for (const char* bad : {"", "Upper", "with space", "x/../y", static_cast<const char*>(nullptr)}) {
    t = SoundTable();
    t.name = bad;
    EXPECT_THAT(Refusal(t), HasSubstr("its name"));
  }
  t = SoundTable();
  t.version = nullptr;
  EXPECT_THAT(Refusal(t), HasSubstr("no version"));
}

TEST(PluginTableTest, NamesEachMissingFunction) {
  int required = 0;
  for (size_t at = offsetof(trine_plugin, open); at < TRINE_PLUGIN_REQUIRED_SIZE;
       at += sizeof(void*), ++required) {
    trine_plugin t = SoundTable();
    std::memset(reinterpret_cast<char*>(&t) + at, 0, sizeof(void*));
    EXPECT_THAT(Refusal(t), HasSubstr("required function")) << "offset " << at;
  }
  EXPECT_EQ(required, 22);
}

TEST(PluginTableTest, StatusKeepsCodeAndSentence) {
  trine_error err{};
  std::strcpy(err.message, "no room");
  const absl::Status status = ToStatus(TRINE_RESOURCE_EXHAUSTED, err, "cpu: buffer_alloc");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "cpu: buffer_alloc: no room");
  EXPECT_TRUE(ToStatus(TRINE_OK, err, "").ok());
  EXPECT_EQ(ToStatus(99, err, "").code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(ToStatus(-1, err, "").code(), absl::StatusCode::kUnknown);
  std::memset(err.message, 'x', sizeof(err.message));  // a plugin that forgot the NUL
  EXPECT_EQ(ToStatus(TRINE_INTERNAL, err, "w").message().size(), 3 + sizeof(err.message));
}

TEST(PluginTableTest, ExceptionsStopAtTheBorder) {
  const absl::Status status = CallPlugin(
      "bad: open", [](trine_error*) -> trine_status { throw std::runtime_error("boo"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("threw an exception"));
}

}  // namespace
}  // namespace trine
