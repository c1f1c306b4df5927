// Checks a compiled shader for the build. Finds which buffers the shader reads and writes, and
// whether its arithmetic is the contract's (docs/numerics.md). trine-embed-shader and its tests use
// this small reader of SPIR-V; the plugin does not contain it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/vulkan/spirv/shader.h"

namespace trine::vulkan {

// The parts of a shader that its caller must know.
struct SpirvInterface {
  uint32_t binding_count = 0;
  uint32_t reads = 0;   // bit b: binding b is not writeonly
  uint32_t writes = 0;  // bit b: binding b is not readonly
  uint32_t push_bytes = 0;
  std::vector<uint32_t> capabilities;
};

class SpirvModule {
 public:
  // Parses words that spirv-val has accepted. error() says what is wrong, or is "".
  explicit SpirvModule(std::vector<uint32_t> words);

  const std::string& error() const { return error_; }
  const std::vector<uint32_t>& words() const { return words_; }
  const SpirvInterface& interface() const { return interface_; }

  // Returns one sentence for each instruction that could give other bits on another device: an add,
  // sub or mul of floats without NoContraction or not of 32 bits, any other float arithmetic, float
  // reductions across invocations, conversions to and from half floats. Also reports a shader with
  // float arithmetic that does not request rounding to nearest even. Returns none if the shader is
  // exact.
  std::vector<std::string> InexactUses() const;

 private:
  struct Instruction {
    uint32_t opcode;
    std::vector<uint32_t> operands;
  };

  void Split();
  void ReadInterface();
  void ReadBuffer(uint32_t variable, uint32_t block);
  bool Decorated(uint32_t id, uint32_t decoration, uint32_t* value = nullptr) const;
  bool AllMembersDecorated(uint32_t type, uint32_t decoration) const;
  const Instruction* Definition(uint32_t id) const;  // id: a type or a constant
  uint32_t Pointee(uint32_t pointer_type) const;
  uint32_t SizeOf(uint32_t type);
  uint32_t SizeOfStruct(uint32_t type);
  bool IsFloat(uint32_t type, uint32_t bits) const;  // type: a scalar or a vector
  std::string InexactUse(const Instruction& instruction) const;
  void Fail(const std::string& what);

  std::vector<uint32_t> words_;
  std::vector<Instruction> instructions_;
  SpirvInterface interface_;
  std::string error_;
};

// Returns the FNV-1a hash of the words.
uint64_t HashWords(const std::vector<uint32_t>& words);

}  // namespace trine::vulkan
