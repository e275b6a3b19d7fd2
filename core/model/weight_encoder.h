// How a stored format is written: which tensors a weight becomes, their bytes for some rows of it, and what
// config.json says of them. A format that `convert --to` can write has an encoder (core/model/formats).
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/error_sums.h"
#include "core/model/given_scales.h"
#include "core/model/ignored_modules.h"
#include "core/model/stored_form.h"
#include "core/numeric/block_quantizer.h"
#include "core/system/json.h"
#include "core/system/report.h"
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
  std::vector<Part> parts_;  // in the order of WeightEncoder::parts()
  std::vector<Scratch<std::byte>> memory_;
};

struct RowsToEncode {
  const LogicalTensor& tensor;
  std::uint64_t first = 0, rows = 0;
  std::span<const float> values;  // finite
  float whole_amax = 0;           // of the tensor and what engines fuse with it, where needs_whole_amax()
  const GivenScales* given = nullptr;
};

class WeightEncoder {
 public:
  virtual ~WeightEncoder() = default;
  // A sentence, when a matrix of this size cannot be stored so.
  virtual std::optional<std::string> refuses(const LogicalTensor&) const { return std::nullopt; }
  virtual std::vector<EncodedPart> parts(const LogicalTensor& tensor) const = 0;
  virtual std::string form(const LogicalTensor& tensor) const = 0;  // "F8_E4M3 128x128", "MXFP4"
  // Rows that must be encoded together: pieces are multiples of it.
  virtual std::uint64_t rows_together() const { return 1; }
  // One scale concerns the whole tensor, whose largest magnitude a first pass finds.
  virtual bool needs_whole_amax() const { return false; }
  // Safe from several threads.
  virtual void encode(const RowsToEncode& rows, EncodedRows& out) const = 0;

  // Of one code an element: how a matrix of this size is divided into blocks. Groups of the other forms divide
  // the columns: the shape of their scales tells.
  virtual std::optional<BlockQuantizer> quantizer(std::uint64_t /*rows*/, std::uint64_t /*columns*/) const {
    return std::nullopt;
  }
  virtual bool takes_int8_range() const { return false; }  // TargetText::int8_range means something to it

  // What config.json says of the result, in quantization_config; null: nothing.
  virtual Json quantization_config(const IgnoredModules& ignored) const = 0;
  // Other files that say the same: name, document.
  virtual std::vector<std::pair<std::string, Json>> files_beside(const IgnoredModules&) const { return {}; }
  virtual std::string note() const { return {}; }  // what the loader must be told beside it
};

enum class Int8Range : std::uint8_t { symmetric_127, compressed_tensors };  // amax/127, amax/127.5

// What `--to` says: "fp8:block=128x128,scale=ue8m0".
struct TargetText {
  std::string_view text;
  Int8Range int8_range = Int8Range::symmetric_127;

  // The options behind a name, "mxfp4" or "mxfp4,…" or "fp8:…"; nullopt where the name is another.
  std::optional<std::string_view> options(std::string_view name) const;
  // Calls take(option) for every part of them between commas; false from it: not understood.
  void for_each(std::string_view options, const std::function<bool(std::string_view)>& take) const;
  // Throws Error::usage.
  [[noreturn]] void refuse(const std::string& why) const;

  struct Block {
    std::uint64_t rows, columns;
  };
  Block block(std::string_view size) const;  // "128x128"
};

// Of the format that the text names; null: none does.
std::shared_ptr<const WeightEncoder> weight_encoder(const TargetText& text);
std::string weight_targets();       // "fp8:…, int8:…, mxfp4, mxfp8": what all of them are called
std::string weight_target_usage();  // a line for each format, for --help

// Copies `elements` into a part.
template <class Element>
void put_elements(EncodedRows& out, std::size_t part, std::span<const Element> elements, std::uint64_t at) {
  std::memcpy(out.put(part, elements.size_bytes(), at).data(), elements.data(), elements.size_bytes());
}

}  // namespace assay
