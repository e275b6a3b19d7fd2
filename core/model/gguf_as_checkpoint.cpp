#include "core/model/gguf_as_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/formats/json.h"
#include "core/model/composed_tensor.h"
#include "core/model/gguf_import.h"
#include "core/model/scale_grid.h"
#include "core/numeric/codec.h"
#include "core/system/error.h"

namespace assay {
namespace {

using Piece = DerivedTensor::Piece;
using Seen = GgufAsCheckpoint::Seen;

bool keeps_values(const DerivedTensor& tensor) {
  return tensor.computed.empty() && tensor.order == HeadRows::kept && tensor.offset == 0 &&
         tensor.log_of == 0 && tensor.times_exp == 0 && tensor.regrouped.groups == 0 && !tensor.times &&
         !tensor.centred && tensor.zero_rows == 0;
}

bool is_whole_rows(const Piece& piece) {
  return piece.columns == 0 && piece.first_column == 0 && piece.column_step == 1 && !piece.is_scaled();
}

class Seeing {
 public:
  Seeing(Checkpoint& checkpoint, const ModuleTree& tree, std::shared_ptr<const StoredTensors> sources)
      : checkpoint_(checkpoint), lookup_(tree), sources_(std::move(sources)) {}

  void take(DerivedTensor tensor, GgufAsCheckpoint& result) {
    const auto found = lookup_.find(tensor.name);
    if (found && keeps_values(tensor) && take_gate_and_up(tensor, *found->spec, result)) return;
    if (found && keeps_values(tensor) && take_turned(tensor, *found->spec, result)) return;
    if (const auto lying = where_it_lies(tensor)) return add(result, *lying, std::nullopt);
    LogicalTensor made = compose(std::move(tensor), sources_);
    set_sizes(made);
    add(result, std::move(made), std::nullopt);
  }

 private:
  static void add(GgufAsCheckpoint& result, LogicalTensor tensor, std::optional<Seen> seen) {
    result.stored.tensors.push_back(std::move(tensor));
    result.seen.push_back(seen);
  }
  static void set_sizes(LogicalTensor& tensor) {
    const MatrixSizes sizes = as_matrices(tensor.shape);
    tensor.slices = sizes.slices, tensor.rows = sizes.rows, tensor.columns = sizes.columns;
  }

  // One run of rows of a tensor without scales of its own.
  std::optional<LogicalTensor> where_it_lies(const DerivedTensor& tensor) {
    if (tensor.pieces.size() != 1 || !keeps_values(tensor)) return std::nullopt;
    const Piece& piece = tensor.pieces.front();
    const LogicalTensor& source = sources_->tensors[piece.source];
    const bool plain = source.form.kind == FormKind::plain && source.composed == nullptr && !source.table;
    const auto row_bytes = storage_bytes(source.form.codes, source.columns);
    if (!plain || piece.transposed || !is_whole_rows(piece) || source.columns != tensor.columns() ||
        !row_bytes)
      return std::nullopt;
    CheckpointTensor part = checkpoint_.tensors[source.codes];
    part.name = tensor.name;
    part.shape = tensor.shape;
    part.offset += piece.first_row * *row_bytes;
    part.bytes = piece.rows * *row_bytes;
    LogicalTensor lying = source;
    lying.name = tensor.name;
    lying.shape = tensor.shape;
    set_sizes(lying);
    lying.codes = static_cast<std::uint32_t>(checkpoint_.tensors.size());
    checkpoint_.tensors.push_back(std::move(part));
    return lying;
  }

  LogicalTensor renamed(std::uint32_t source, const std::string& name) const {
    LogicalTensor tensor = sources_->tensors[source];
    tensor.name = name;
    return tensor;
  }

  // Gate and up of every expert, or of one MLP, in one tensor of a checkpoint and in two of the GGUF.
  bool take_gate_and_up(const DerivedTensor& tensor, const TensorSpec& spec, GgufAsCheckpoint& result) {
    if (spec.role != Role::mlp_gate_up) return false;
    std::set<std::uint32_t> places;
    for (const Piece& piece : tensor.pieces) places.insert(piece.source);
    std::optional<std::uint32_t> gate, up;
    for (const std::uint32_t place : places) {
      const std::string& name = sources_->tensors[place].name;
      if (name.find(".ffn_gate") != std::string::npos) gate = place;
      if (name.find(".ffn_up") != std::string::npos) up = place;
    }
    if (places.size() != 2 || !gate || !up || tensor.pieces.front().source != *gate) return false;
    add(result, renamed(*gate, tensor.name), Seen{Role::mlp_gate, false});
    add(result, renamed(*up, tensor.name), Seen{Role::mlp_up, false});
    return true;
  }

  // The matrices of all experts transposed, one by one.
  bool take_turned(const DerivedTensor& tensor, const TensorSpec& spec, GgufAsCheckpoint& result) {
    if (spec.stacked == 0 || tensor.abreast != 1 || tensor.pieces.size() != spec.stacked) return false;
    const LogicalTensor& source = sources_->tensors[tensor.pieces.front().source];
    for (std::size_t i = 0; i < tensor.pieces.size(); ++i) {
      const Piece& piece = tensor.pieces[i];
      const bool turned = piece.transposed && is_whole_rows(piece) &&
                          piece.source == tensor.pieces[0].source && piece.rows == source.rows &&
                          piece.first_row == i * source.rows;
      if (!turned || source.slices != tensor.pieces.size()) return false;
    }
    add(result, renamed(tensor.pieces.front().source, tensor.name), Seen{spec.role, !spec.input_major});
    return true;
  }

  Checkpoint& checkpoint_;
  TensorLookup lookup_;
  std::shared_ptr<const StoredTensors> sources_;
};

}  // namespace

GgufAsCheckpoint gguf_as_checkpoint(Checkpoint& checkpoint) {
  const GgufFamily* family = family_of_gguf(checkpoint);
  if (family == nullptr)
    throw Error::input("is of an architecture that is not read back").in(checkpoint.files.front().path);
  const auto sources = std::make_shared<const StoredTensors>(find_stored(checkpoint, std::nullopt));
  HfModel model;
  const ParsedJson said = hf_config(checkpoint, *family, *sources, ElementType::F32, model);
  ModelConfig config = ModelConfig::from_json(said, checkpoint.files.front().path);
  ModuleTree tree = describe(config);
  GgufAsCheckpoint result{std::move(config), std::move(tree), {}, {}};
  result.stored.findings = sources->findings;
  Seeing seeing(checkpoint, result.tree, sources);
  for (DerivedTensor& tensor :
       hf_tensors(checkpoint, *family, *sources, result.config, result.tree, model.left_out))
    seeing.take(std::move(tensor), result);
  return result;
}

}  // namespace assay
