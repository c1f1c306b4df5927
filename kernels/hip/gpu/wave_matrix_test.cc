// Checks the emulator's versions of AMD's matrix units against AMD's documents, which say where
// each element is: its lane, and its byte or register there.
#include "kernels/hip/gpu/wave_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "kernels/hip/gpu/emulator.h"
#include "kernels/hip/gpu/launch.h"

namespace trine::hip {
namespace {

struct Place {
  int lane, at;
};

// The place of byte k of row r of a, or of column r of b, and of the result in row r and column c.
struct Layout {
  int depth;
  Place (*operand)(int r, int k);
  Place (*result)(int r, int c);
  const char* (*multiply)(void** lanes);
};

Place Eights(int r, int k) { return {r + 16 * (k / 8), k % 8}; }
Place Quarters(int r, int c) { return {c + 16 * (r / 4), r % 4}; }

constexpr Layout kWmmaGfx11 = {16,
                               [](int r, int k) -> Place {
                                 return {r, k};
                               },
                               [](int r, int c) -> Place {
                                 return {c + 16 * (r % 2), r / 2};
                               },
                               &emulated::WaveMatrix<32, 16, 16, WmmaGfx11::Row>};
constexpr Layout kWmmaGfx12 = {16, &Eights,
                               [](int r, int c) -> Place {
                                 return {c + 16 * (r / 8), r % 8};
                               },
                               &emulated::WaveMatrix<32, 16, 8, WmmaGfx12::Row>};
constexpr Layout kMfmaGfx90a = {16,
                                [](int r, int k) -> Place {
                                  return {r + 16 * (k / 4), k % 4};
                                },
                                &Quarters, &emulated::WaveMatrix<64, 16, 4, MfmaGfx90a::Row>};
constexpr Layout kMfmaGfx942 = {32, &Eights, &Quarters,
                                &emulated::WaveMatrix<64, 32, 8, MfmaGfx942::Row>};

struct Registers {
  uint32_t a[4] = {}, b[4] = {};
  int32_t c[8] = {};
};

void Put(int8_t value, int at, uint32_t (&words)[4]) {
  words[at / 4] |= static_cast<uint32_t>(static_cast<uint8_t>(value)) << (8 * (at % 4));
}

// `twice`: lane 16 and later lanes have the same bytes as the first 16.
void ExpectProduct(const Layout& layout, bool twice) {
  int8_t a[16][32], b[16][32];
  for (int r = 0; r < 16; ++r) {
    for (int k = 0; k < 32; ++k) {
      a[r][k] = static_cast<int8_t>(37 * r + 11 * k - 128);
      b[r][k] = static_cast<int8_t>(101 * r - 13 * k + 5);
    }
  }
  Registers registers[64];
  for (int r = 0; r < 16; ++r) {
    for (int k = 0; k < layout.depth; ++k) {
      const Place place = layout.operand(r, k);
      for (int again = 0; again <= (twice ? 16 : 0); again += 16) {
        Put(a[r][k], place.at, registers[place.lane + again].a);
        Put(b[r][k], place.at, registers[place.lane + again].b);
      }
    }
  }
  emulated::WaveLane lanes[64];
  void* brought[64];
  for (int i = 0; i < 64; ++i) {
    registers[i].c[i % 4] = i;  // the product is added to this
    lanes[i] = {registers[i].a, registers[i].b, registers[i].c};
    brought[i] = &lanes[i];
  }
  ASSERT_EQ(layout.multiply(brought), nullptr);
  for (int r = 0; r < 16; ++r) {
    for (int c = 0; c < 16; ++c) {
      const Place place = layout.result(r, c);
      int32_t sum = place.at == place.lane % 4 ? place.lane : 0;
      for (int k = 0; k < layout.depth; ++k) sum += a[r][k] * b[c][k];
      EXPECT_EQ(registers[place.lane].c[place.at], sum) << r << " " << c;
    }
  }
}

TEST(WaveMatrix, ElementsAreWhereTheHardwareHasThem) {
  ExpectProduct(kWmmaGfx11, true);
  ExpectProduct(kWmmaGfx12, false);
  ExpectProduct(kMfmaGfx90a, false);
  ExpectProduct(kMfmaGfx942, false);
}

TEST(WaveMatrix, OnRdna3BothHalvesOfAWaveGiveTheSame) {
  Registers registers[32];
  emulated::WaveLane lanes[32];
  void* brought[32];
  for (int i = 0; i < 32; ++i) {
    lanes[i] = {registers[i].a, registers[i].b, registers[i].c};
    brought[i] = &lanes[i];
  }
  EXPECT_EQ(kWmmaGfx11.multiply(brought), nullptr);
  registers[21].b[3] = 1;
  EXPECT_STREQ(kWmmaGfx11.multiply(brought),
               "the halves of a wave give a matrix unit different values");
}

// ---- In kernels --------------------------------------------------------------------------------

struct UnitArgs {
  const Word4* a;  // 16 rows: their first halves, then their second
  const Word4* b;
  int32_t (*c)[8];
};

template <class Matrix>
void Multiply(UnitArgs args) {
  const uint32_t lane = ThreadX();
  const auto a = Matrix::Load(args.a, args.a + 16, lane);
  const auto b = Matrix::Load(args.b, args.b + 16, lane);
  int32_t whole[Matrix::kResults] = {}, halves[2][Matrix::kResults] = {};
  Matrix::Add(a, b, whole);
  Matrix::template AddHalf<0>(a, b, halves[0]);
  Matrix::template AddHalf<1>(a, b, halves[1]);
  for (int i = 0; i < Matrix::kResults; ++i) {
    // All bytes of the first halves are 1.
    args.c[lane][i] = whole[i] == halves[0][i] + halves[1][i] && halves[0][i] == 16 ? whole[i] : -1;
  }
}

class WaveMatrixKernel : public ::testing::Test {
 protected:
  ~WaveMatrixKernel() override { emulator::Configure({}); }

  template <class Matrix>
  std::string Run(uint32_t wave) {
    emulator::Configure({wave, emulator::Order::kRandom, 5});
    Word4 a[32], b[32];
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t word =
          i < 16 ? 0x01010101u : i - 16;  // row i - 16: its number, in every fourth byte
      a[i] = {word, word, word, word};
      b[i] = {0x01010101u, 0x01010101u, 0x01010101u, 0x01010101u};
    }
    int32_t c[64][8] = {};
    const std::string wrong =
        emulator::Run(MakeLaunch(&Multiply<Matrix>, {1}, {Matrix::kWave}, UnitArgs{a, b, c}));
    if (!wrong.empty()) return wrong;
    for (int lane = 0; lane < static_cast<int>(Matrix::kWave); ++lane) {
      for (int i = 0; i < Matrix::kResults; ++i) {
        EXPECT_EQ(c[lane][i], 16 + 4 * Matrix::Row(lane, i)) << lane << " " << i;
      }
    }
    return "";
  }
};

TEST_F(WaveMatrixKernel, HalvesOfBlocksAddUp) {
  EXPECT_EQ(Run<WmmaGfx11>(32), "");
  EXPECT_EQ(Run<WmmaGfx12>(32), "");
  EXPECT_EQ(Run<MfmaGfx90a>(64), "");
  EXPECT_EQ(Run<MfmaGfx942>(64), "");
}

TEST_F(WaveMatrixKernel, WavesOf64AreNotWavesOf32) {
  EXPECT_THAT(Run<MfmaGfx90a>(32), ::testing::HasSubstr("waves are of 32, at block (0, 0, 0)"));
}

TEST_F(WaveMatrixKernel, AWaveMeetsAsAWhole) {
  emulator::Configure({64, emulator::Order::kForward, 1});
  const auto half = [](UnitArgs) {
    if (ThreadX() >= 32) return;
    emulator::MeetWave([](void**) -> const char* { return nullptr; }, nullptr);
  };
  EXPECT_THAT(emulator::Run(MakeLaunch<UnitArgs>(half, {1}, {64}, UnitArgs{})),
              ::testing::HasSubstr("while others of their group are elsewhere"));
  const auto both = [](UnitArgs) {
    if (ThreadX() < 32) return SyncLanes();
    emulator::MeetWave([](void**) -> const char* { return nullptr; }, nullptr);
  };
  EXPECT_THAT(emulator::Run(MakeLaunch<UnitArgs>(both, {1}, {64}, UnitArgs{})),
              ::testing::HasSubstr("different meetings"));
}

}  // namespace
}  // namespace trine::hip
