// What is operand to a plugin's kernel for the time of one call: operands as kernels/plugin.h describes them,
// where and how the kernel wants them, guarded.
//
//   kernel takes             matrices                                    weights, indices, codes
//   float32, on the CPU      the very matrices (GuardedOps guards them)  copies before a page that cannot be
//     where only read        as bfloat16, and read-only                    touched, read-only where inputs
//   bfloat16, on the CPU     copies between canaries, rows padded alike
//   anything, on a device    the same, in the device's memory            copies in the device's memory
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/plugin.h"
#include "kernels/plugin/device_memory.h"
#include "kernels/plugin/guarded_bytes.h"
#include "kernels/registry/calling_ops.h"

namespace assay {

// Bytes in the memory a kernel computes in.
class OperandBytes {
 public:
  // device null: ordinary memory.
  OperandBytes(DeviceMemory* device, const void* source, std::size_t size, bool writable);
  OperandBytes(OperandBytes&& other) noexcept;
  OperandBytes(const OperandBytes&) = delete;
  OperandBytes& operator=(const OperandBytes&) = delete;
  ~OperandBytes();
  void* data() const;
  void fetch(void* to) const;
  // Other contents at the same address.
  void rewrite(const std::function<void(std::span<std::byte>)>& change);
  // Nothing was written beside them.
  bool intact() const;

 private:
  DeviceMemory* device_;
  std::optional<GuardedBytes> host_;
  void* where_ = nullptr;
  std::size_t size_;
};

// What was operand before and is operand again at the same address: weights, those of one case or of one model, and
// arguments, whose contents may be others by then.
class MarshalledWeights {
 public:
  const void* marshal(DeviceMemory* device, const void* bytes, std::size_t size);
  const void* marshal_argument(const void* home, std::span<const std::byte> contents);
  // From here on everything is operand at addresses that were never used in this case, weights with their words
  // in the opposite order (true); as they are, at the same addresses (false).
  void marshal_others(bool others);
  // Before the weights themselves go.
  void clear();

 private:
  struct Key {
    DeviceMemory* device;
    const void* bytes;
    std::size_t size;
    auto operator<=>(const Key&) const = default;
  };
  static void reverse(OperandBytes& operand);
  std::map<Key, OperandBytes> operand_, arguments_;
  std::vector<std::map<Key, OperandBytes>> retired_;  // kept, so that their addresses are not used again
  bool reversed_ = false;
};

struct MarshalTerms {
  std::int32_t activations = ASSAY_F32;
  DeviceMemory* device = nullptr;
  // null: shapes only, nothing is copied and nothing may be touched.
  MarshalledWeights* weights = nullptr;
};

class MarshalledCall {
 public:
  explicit MarshalledCall(const MarshalTerms& terms) : terms_(terms) {}

  assay_matrix input(const Matrix& m) { return matrix(m, true, false, terms_.activations); }
  assay_matrix output(const Matrix& m) { return matrix(m, false, true, terms_.activations); }
  assay_matrix changed(const Matrix& m) { return matrix(m, true, true, terms_.activations); }
  assay_matrix float_input(const Matrix& m) { return matrix(m, true, false, ASSAY_F32); }
  assay_matrix float_output(const Matrix& m) { return matrix(m, false, true, ASSAY_F32); }
  // Null for no weight.
  const assay_weight* weight(const WeightView& view);
  const assay_weight* const* weights(const std::vector<WeightView>& views);
  const assay_sequence* sequences(const std::vector<SequenceMetadata>& sequences);
  template <class T>
  const T* array(std::span<const T> values) {
    return static_cast<const T*>(bytes(values.data(), values.size_bytes()));
  }
  template <class T>
  T* result_array(std::span<T> values) {
    return static_cast<T*>(result_bytes(values.data(), values.size_bytes()));
  }

  // False: a weight is stored in a way that kernels/plugin.h has no words for.
  bool expressible() const { return expressible_; }
  // After the kernel has run: results to where they belong. Throws RunFault where something else was written.
  void settle();

 private:
  struct Staged {  // a matrix that is not operand as it is
    Matrix home;
    bool input, output;
    std::int32_t type;
    std::vector<std::byte> before;  // as it was operand, canaries included
    OperandBytes operand;
  };
  struct ResultBytes {
    void* home;
    std::size_t size;
    OperandBytes operand;
  };
  assay_matrix matrix(const Matrix& m, bool input, bool output, std::int32_t type);
  assay_paged_kv cache_rows(const PagedKvView& rows, std::size_t keys);
  const void* bytes(const void* source, std::size_t size);
  void* result_bytes(void* home, std::size_t size);
  static void settle(const Staged& staged);

  MarshalTerms terms_;
  bool expressible_ = true;
  std::deque<assay_weight> weights_;
  std::deque<std::vector<const assay_weight*>> weight_lists_;
  std::deque<std::vector<assay_sequence>> sequences_;
  std::deque<OperandBytes> arrays_;
  std::deque<Staged> staged_;
  std::deque<ResultBytes> results_;
};

// The number of an element type in kernels/plugin.h, and back.
std::optional<std::int32_t> abi_type(ElementType type);
std::optional<ElementType> element_type_from_abi(std::int32_t type);

}  // namespace assay
