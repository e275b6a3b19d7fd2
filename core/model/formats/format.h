// The table of stored formats. Everything this program knows of one way to keep weights in few bits is one
// StoredFormat in one file beside this one, and one line in formats.cpp: find_stored(), the sizes of
// paramcount, the targets of `convert --to` and the names that verify reads all ask the table.
//
// What a format is made of:
//
//   names       endings, methods: which tensors belong together, and under which quant_method
//   grid        claims, resolve: whether a weight is stored so; its shape, blocks and places (LogicalTensor)
//   decoding    StoredForm where one of its arithmetics (FormKind) is meant, else FormDetails::decode
//   sizes       bytes an element with scales; what engines demand of its blocks (WeightFormat)
//   encoding    target: an encoder for `--to`, and what it writes into config.json (WeightEncoder)
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/formats/resolve.h"
#include "core/model/stored_names.h"
#include "core/model/weight_format.h"

namespace assay {

class WeightEncoder;  // core/model/weight_encoder.h
struct TargetText;

// How a tensor beside a weight is named. Of several endings that fit a name the longest is meant.
struct NameEnding {
  std::string_view suffix, weight;  // what stands in the name; what stands there in the weight's name
  StoredPart part;
  // The ending is that of ordinary parameters, too: it is believed where the weight stands beside it, or
  // where that weight is stored as codes.
  enum class Belief : std::uint8_t { always, beside_a_weight, beside_codes } belief = Belief::always;
  // Scales and zero points of activations: nothing of the weight is in them.
  bool of_activations = false;
};

struct StoredFormat {
  std::string_view name;  // for people: "MLX"
  std::span<const NameEnding> endings;
  std::span<const std::string_view> methods;  // quant_method in quantization_config

  // Whether a weight, with what stands beside it, is of this format; then resolve() finishes the tensor or
  // says what is wrong. Its name, place of codes, auxiliary tensors and factors of inputs are set.
  bool (*claims)(const StoredResolution& resolution, const LogicalTensor& tensor,
                 const StoredGroup& group) = nullptr;
  void (*resolve)(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) = nullptr;
  // Whether codes of this shape can hold the matrix, where they are not simply packed along rows or columns.
  bool (*holds)(const WeightMatrix& matrix, const CheckpointTensor& codes) = nullptr;

  std::vector<WeightFormat> (*sizes)() = nullptr;  // under the names that paramcount offers
  std::optional<WeightFormat> (*configured)(const QuantizationConfig& config) = nullptr;

  // The encoder for a `--to` that names this format; null: it names another. Throws Error::usage.
  std::shared_ptr<const WeightEncoder> (*target)(const TargetText& text) = nullptr;
  std::string_view target_names = {};  // "mxfp4, mxfp8": where others are listed
  std::string_view target_usage = {};  // "mxfp4 | mxfp8 [,scale=…]": for --help
};

// From the most general to the most particular: who looks for the one that fits begins at the end.
std::span<const StoredFormat* const> stored_formats();
std::span<const NameEnding> name_endings();          // of all of them, longer ones first
const NameEnding* ending_of(std::string_view name);  // null: that of no part of a weight
std::string weight_name(std::string_view name, const NameEnding& ending);

// What formats ask of a config: whether its method, format or type has the word; bits of a code and columns of a
// group, 0 where it does not say.
bool says(const QuantizationConfig& config, std::string_view word);
std::uint64_t said_bits(const QuantizationConfig& config);
std::uint64_t said_group(const QuantizationConfig& config);

// A format of one's own, for as long as this lives: of a program that links the library, or a test. It must
// outlive what is found and written by it, and no other thread may be looking.
class AddedFormat {
 public:
  explicit AddedFormat(const StoredFormat& format);
  ~AddedFormat();
  AddedFormat(const AddedFormat&) = delete;
  AddedFormat& operator=(const AddedFormat&) = delete;
};

}  // namespace assay
