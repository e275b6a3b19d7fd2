// How a quantized target stores a weight: which tensors it writes, and their bytes for some rows of it. One
// encoder for each family of targets.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/errors.h"
#include "convert/given_scales.h"
#include "convert/spec.h"
#include "core/model/stored_form.h"
#include "core/system/scratch.h"

namespace assay {

struct EncodedPart {
  std::string suffix;  // after the weight's name: "", "_scale_inv", "_packed"
  ElementType type;
  std::vector<std::uint64_t> shape;
  bool is_scale = true;
};

// What is made of some rows: for every part, bytes and where they belong in its tensor; and how far the rows,
// as the output will decode, are from what they were. Kept from one use to the next, for its memory.
class EncodedRows {
 public:
  struct Part {
    std::span<std::byte> bytes;  // empty: these rows have nothing of the part
    std::uint64_t at = 0;
  };
  void begin(std::size_t parts) {
    parts_.assign(parts, {});
    if (memory_.size() < parts) memory_.resize(parts);
    error = {};
  }
  // Room for `size` bytes of a part; they belong at `at`.
  std::span<std::byte> put(std::size_t part, std::size_t size, std::uint64_t at) {
    return (parts_[part] = {memory_[part].take(size), at}).bytes;
  }
  const Part& part(std::size_t i) const { return parts_[i]; }
  // What part(i).bytes are the beginning of; whoever takes it away leaves other.
  Scratch<std::byte>& memory(std::size_t i) { return memory_[i]; }
  ErrorSums error;

 private:
  std::vector<Part> parts_;  // in the order of Encoder::parts()
  std::vector<Scratch<std::byte>> memory_;
};

struct RowsToEncode {
  const LogicalTensor& tensor;
  std::uint64_t first = 0, rows = 0;
  std::span<const float> values;  // finite
  float whole_amax = 0;           // of the tensor and what engines fuse with it, where needs_whole_amax()
  const GivenScales* given = nullptr;
};

class Encoder {
 public:
  virtual ~Encoder() = default;
  // A sentence, when a matrix of this size cannot be stored so.
  virtual std::optional<std::string> refuses(const LogicalTensor& tensor) const;
  virtual std::vector<EncodedPart> parts(const LogicalTensor& tensor) const = 0;
  virtual std::string form(const LogicalTensor& tensor) const = 0;  // "F8_E4M3 128x128", "MXFP4"
  // Rows that must be encoded together: pieces are multiples of it.
  virtual std::uint64_t rows_together() const { return 1; }
  // One scale concerns the whole tensor, whose largest magnitude a first pass finds.
  virtual bool needs_whole_amax() const { return false; }
  // Safe from several threads.
  virtual void encode(const RowsToEncode& rows, EncodedRows& out) const = 0;
};

// Of Spec::Kind::quantize.
std::unique_ptr<Encoder> make_encoder(const Spec& spec);
std::unique_ptr<Encoder> make_scaled_encoder(const Spec& spec);  // fp8:…, int8:…
std::unique_ptr<Encoder> make_mx_encoder(const Spec& spec);      // mxfp4, mxfp8
std::unique_ptr<Encoder> make_nvfp4_encoder(const Spec& spec);
std::unique_ptr<Encoder> make_int4_encoder(const Spec& spec);

// Copies `elements` into a part.
template <class Element>
void put_elements(EncodedRows& out, std::size_t part, std::span<const Element> elements, std::uint64_t at) {
  std::memcpy(out.put(part, elements.size_bytes(), at).data(), elements.data(), elements.size_bytes());
}

}  // namespace assay
