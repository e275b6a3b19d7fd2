// How a quantized target stores a weight: which tensors it writes, and their bytes for some rows of it. One
// encoder for each family of targets.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/given_scales.h"
#include "convert/spec.h"
#include "core/model/stored_form.h"

namespace assay {

struct EncodedPart {
  std::string suffix;  // after the weight's name: "", "_scale_inv", "_packed"
  ElementType type;
  std::vector<std::uint64_t> shape;
  bool is_scale = true;
};

// What is made of some rows: for every part, bytes and where they belong in its tensor.
struct EncodedRows {
  struct Bytes {
    std::vector<std::byte> bytes;  // empty: these rows have nothing of the part
    std::uint64_t at = 0;
  };
  std::vector<Bytes> parts;  // in the order of Encoder::parts()
  std::vector<float> after;  // the rows as the output will decode
  std::uint64_t clamped = 0, zero_blocks = 0;
};

struct RowsToEncode {
  const LogicalTensor& tensor;
  std::uint64_t first = 0, rows = 0;
  std::span<const float> values;  // finite
  float whole_amax = 0;           // of the tensor, where needs_whole_amax()
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
  virtual EncodedRows encode(const RowsToEncode& rows) const = 0;
};

// Of Spec::Kind::quantize.
std::unique_ptr<Encoder> make_encoder(const Spec& spec);
std::unique_ptr<Encoder> make_scaled_encoder(const Spec& spec);  // fp8:…, int8:…
std::unique_ptr<Encoder> make_mx_encoder(const Spec& spec);      // mxfp4, mxfp8
std::unique_ptr<Encoder> make_nvfp4_encoder(const Spec& spec);
std::unique_ptr<Encoder> make_int4_encoder(const Spec& spec);

template <class Element>
std::vector<std::byte> to_bytes(const std::vector<Element>& elements) {
  const auto bytes = std::as_bytes(std::span(elements));
  return {bytes.begin(), bytes.end()};
}

}  // namespace assay
