#include "core/model/stored_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "core/formats/json.h"
#include "core/model/composed_tensor.h"
#include "core/model/nested_config.h"
#include "core/model/stored_checks.h"
#include "core/model/stored_resolve.h"
#include "core/numeric/codec.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::string_view kWeight = ".weight";

// These endings are names of ordinary parameters too.
bool needs_a_weight_to_be_believed(std::string_view suffix) {
  return suffix == "scale" || suffix == "scales" || suffix == "biases" || suffix == "g_idx";
}

// Scales and zero points of activations: nothing of the weight is in them.
bool concerns_activations(std::string_view suffix) {
  return suffix.starts_with("input_") || suffix.starts_with("activation_") ||
         suffix.ends_with("_input_scale") || suffix == "qscale_act" ||
         (suffix.starts_with("_weight_act_") && suffix != "_weight_act_pre_scale");
}

class Finder {
 public:
  Finder(const Checkpoint& checkpoint, const std::optional<QuantizationConfig>& quantization)
      : checkpoint_(checkpoint), resolution_(checkpoint, quantization) {}

  StoredTensors run() {
    check_method();
    check_transforms();
    collect();
    for (const std::string& weight : order_) resolve(weight, groups_[weight]);
    StoredTensors& result = resolution_.result;
    std::sort(result.tensors.begin(), result.tensors.end(),
              [](const LogicalTensor& a, const LogicalTensor& b) { return a.codes < b.codes; });
    for (const LogicalTensor& tensor : result.tensors) result.any_quantized |= tensor.quantized();
    check_companions();
    return std::move(result);
  }

 private:
  const CheckpointTensor& stored(std::uint32_t place) const { return checkpoint_.tensors[place]; }

  void check_method() {
    static constexpr std::array<std::string_view, 15> kKnown = {
        "",          "fp8", "blockwise_int8", "w8a8_int8",  "compressed-tensors", "mxfp4",   "modelopt",
        "gptq",      "awq", "bitsandbytes",   "auto-round", "intel/auto-round",   "torchao", "quark",
        "fbgemm_fp8"};
    const std::string_view method = resolution_.method();
    if (std::find(kKnown.begin(), kKnown.end(), method) != kKnown.end()) return;
    resolution_.fault(
        "stored.method_unknown", "",
        fmt::format("quantization_config.quant_method is \"{}\", whose stored form is not known "
                    "here",
                    method));
  }

  // What the weights alone do not hold: rotations applied while the model runs, and bitmasks of sparse ones.
  void check_transforms() {
    const auto& quantization = resolution_.quantization();
    if (quantization && quantization->transforms_activations)
      resolution_.fault("stored.transformed", "",
                        "transform_config rotates activations while the model runs, and its weights are "
                        "meant for those: no other form holds them",
                        "use the checkpoint that was rotated");
    const bool sparse = quantization && !quantization->sparsity.empty() && quantization->sparsity != "dense";
    for (const CheckpointTensor& tensor : checkpoint_.tensors) {
      if (!tensor.name.ends_with(".bitmask")) continue;
      return resolution_.fault("stored.form_unknown", tensor.name,
                               "a bitmask of compressed-tensors' sparse weights, which are not read here",
                               "decompress the checkpoint with llm-compressor first");
    }
    if (sparse && quantization->sparsity.find("bitmask") != std::string::npos)
      resolution_.fault("stored.method_unknown", "",
                        fmt::format("sparsity_config.format is \"{}\", whose stored form is not known here",
                                    quantization->sparsity));
  }

  // Inside a quantized linear layer nothing is ignored: what stands there and is not known may well be a part
  // of its weight (a low-rank residual, a rotation).
  void check_companions() {
    std::unordered_set<std::string_view> modules;
    for (const LogicalTensor& tensor : resolution_.result.tensors) {
      if (tensor.quantized() && tensor.form.kind != FormKind::plain && tensor.name.ends_with(kWeight))
        modules.insert(std::string_view(tensor.name).substr(0, tensor.name.size() - kWeight.size()));
    }
    std::vector<std::pair<std::string, std::string>> unknown;  // module, tensor
    for (const LogicalTensor& tensor : resolution_.result.tensors) {
      if (tensor.quantized() || is_known_beside(tensor.name)) continue;
      const std::string_view name = tensor.name;
      for (auto dot = name.rfind('.'); dot != std::string_view::npos && dot > 0;
           dot = name.rfind('.', dot - 1)) {
        if (!modules.contains(name.substr(0, dot))) continue;
        unknown.emplace_back(name.substr(0, dot), name);
        break;
      }
    }
    for (const auto& [module, name] : unknown)
      resolution_.fault("stored.companion_unknown", name,
                        fmt::format("stands inside {}, whose weight is quantized, and what it does there is "
                                    "not known here",
                                    module),
                        "convert it with the tool that made it");
  }

  // Biases, factors of the cache of keys and values, and what routers choose by.
  static bool is_known_beside(std::string_view name) {
    static constexpr std::array<std::string_view, 4> kEndings = {".bias", ".k_bias", ".v_bias",
                                                                 ".e_score_correction_bias"};
    const bool ends = std::any_of(kEndings.begin(), kEndings.end(),
                                  [&](std::string_view ending) { return name.ends_with(ending); });
    return ends || is_known_buffer(name) || parse_stored_name(name).has_value();
  }

  StoredGroup& group_of(const std::string& weight) {
    const auto [at, is_new] = groups_.try_emplace(weight);
    if (is_new) order_.push_back(weight);
    return at->second;
  }

  void collect() {
    groups_.reserve(checkpoint_.tensors.size());
    for (std::uint32_t i = 0; i < checkpoint_.tensors.size(); ++i) {
      const std::string& name = stored(i).name;
      const auto parsed = parse_stored_name(name);
      const bool believed = parsed && !parsed->weight.empty() && is_believed(*parsed);
      if (believed)
        group_of(parsed->weight).pieces.push_back({parsed->suffix, i, parsed->part});
      else
        group_of(name).plain = i;
    }
  }

  bool is_believed(const StoredName& name) const {
    if (name.suffix == "proj_scale") {  // a parameter of its own unless it stands beside codes
      const CheckpointTensor* codes = checkpoint_.find(name.weight);
      return codes != nullptr && needs_scale(codes->type);
    }
    return !needs_a_weight_to_be_believed(name.suffix) || has_codes(name.weight);
  }

  bool has_codes(const std::string& weight) const {
    if (checkpoint_.find(weight) != nullptr) return true;
    if (!weight.ends_with(".weight")) return false;
    return checkpoint_.find(weight.substr(0, weight.size() - 6) + "qweight") != nullptr;
  }

  void resolve(const std::string& weight, const StoredGroup& group) {
    const StoredPiece* codes = nullptr;
    for (const StoredPiece& piece : group.pieces) {
      if (piece.part == StoredPart::codes) codes = &piece;
    }
    if (!group.plain && codes == nullptr) return without_codes(weight, group);
    LogicalTensor tensor;
    tensor.name = weight;
    tensor.codes = group.plain ? *group.plain : codes->place;
    for (const StoredPiece& piece : group.pieces) {
      if (concerns_activations(piece.suffix)) tensor.companions.push_back(piece.place);
    }
    // x is multiplied by it before it meets the weight (ModelOpt `pre_quant_scale`): W diag(s) x.
    tensor.input_factors = group.place("pre_quant_scale");
    if (group.plain && codes != nullptr) return resolution_.unknown_form(tensor, "two sets of codes");
    if (group.plain) return resolve_plain_name(tensor, group);
    if (codes->suffix == "_weight_qdata")
      return resolve_torchao(resolution_, tensor, group, description(tensor));
    if (codes->suffix == "qweight") return resolve_qweight(resolution_, tensor, group);
    if (codes->suffix != "weight_packed") return resolve_gpt_oss(resolution_, tensor, group);
    if (stored(tensor.codes).type == ElementType::U8) return resolve_packed_fp4(resolution_, tensor, group);
    resolve_packed_int(resolution_, tensor, group);
  }

  // What the file's header says, in JSON, of a weight that was flattened into several tensors.
  ParsedJson description(const LogicalTensor& tensor) {
    if (!described_) read_descriptions();
    const auto entry = described_->find(tensor.name);
    return entry == described_->end() ? ParsedJson() : parse_json(entry->second, stored(tensor.codes).name);
  }

  // A list of tensors that was lent (verify) comes without the metadata of its files.
  void read_descriptions() {
    described_.emplace();
    for (const CheckpointFile& file : checkpoint_.files) {
      auto metadata = file.metadata;
      try {
        if (metadata.empty())
          metadata =
              safetensors::read_header(File::open(file.path), safetensors::Reading::reference).metadata;
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::internal) throw;  // the file's own findings tell of all others
      }
      for (auto& [key, text] : metadata) described_->emplace(std::move(key), std::move(text));
    }
  }

  void resolve_plain_name(LogicalTensor& tensor, const StoredGroup& group) {
    if (checkpoint_.container == Checkpoint::Container::gguf) return resolve_gguf(resolution_, tensor, group);
    if (group.find("weight.quant_map") != nullptr) return resolve_codebook(resolution_, tensor, group);
    if (group.find("biases") != nullptr) return resolve_mlx(resolution_, tensor, group);
    if (group.find("scales") != nullptr) return resolve_mlx_float(resolution_, tensor, group);
    if (resolution_.method() == "quark" && group.find("weight_zero_point") != nullptr)
      return resolve_quark(resolution_, tensor, group);
    resolve_weight(resolution_, tensor, group);
  }

  void without_codes(const std::string& weight, const StoredGroup& group) {
    const bool only_activations =
        std::all_of(group.pieces.begin(), group.pieces.end(),
                    [](const StoredPiece& p) { return concerns_activations(p.suffix); });
    if (!only_activations) {
      return resolution_.fault("stored.scale_without_weight", stored(group.pieces.front().place).name,
                               fmt::format("it belongs to {}, which is not here", weight),
                               "complete the checkpoint, or leave the tensor out");
    }
    for (const StoredPiece& piece : group.pieces) {
      LogicalTensor tensor;
      tensor.name = stored(piece.place).name;
      tensor.codes = piece.place;
      tensor.form.codes = stored(piece.place).type;
      resolution_.finish(tensor, stored(piece.place).shape);
    }
  }

  const Checkpoint& checkpoint_;
  StoredResolution resolution_;
  std::unordered_map<std::string, StoredGroup> groups_;
  std::vector<std::string> order_;
  // The metadata of all files, once asked for.
  std::optional<std::unordered_map<std::string, std::string>> described_;
};

std::string packed_name(const LogicalTensor& tensor) {
  const PackedForm& packed = tensor.form.packed;
  const std::string_view told = details_of(tensor).maker;
  const std::string maker = !told.empty()                                ? std::string(told) + " "
                            : packed.paired_rows                         ? "ModelOpt "
                            : packed.codes.fill == IntPacking::Fill::awq ? "AWQ "
                            : packed.codes_across                        ? "GPTQ "
                            : packed.zero == ZeroPoint::bias             ? "MLX "
                                                                         : "";
  if (tensor.form.block_columns == tensor.columns)
    return fmt::format("{}INT{} channel", maker, packed.codes.bits);
  return fmt::format("{}INT{} group {}", maker, packed.codes.bits, tensor.form.block_columns);
}

}  // namespace

// --- what the resolvers share ------------------------------------------------------------------------------

void StoredResolution::fault(std::string code, const std::string& tensor, std::string message,
                             std::string remedy) {
  result.findings.push_back({.severity = Severity::error,
                             .code = std::move(code),
                             .message = std::move(message),
                             .file = {},
                             .tensor = tensor,
                             .offset = {},
                             .remedy = std::move(remedy)});
}

void StoredResolution::unknown_form(const LogicalTensor& tensor, std::string_view why) {
  const CheckpointTensor& codes = stored(tensor.codes);
  fault("stored.form_unknown", codes.name,
        fmt::format("{} {}, with what stands beside it, is no stored form known here{}{}", name(codes.type),
                    shape_text(codes.shape), why.empty() ? "" : ": ", why));
}

void StoredResolution::finish(LogicalTensor& tensor, const StoredShape& shape) {
  const MatrixSizes sizes = as_matrices(shape);
  if (tensor.input_factors) {
    const CheckpointTensor& factors = stored(*tensor.input_factors);
    if (!tensor.quantized() || sizes.slices != 1 || !is_plain_float(factors.type) ||
        factors.type == ElementType::F64 || element_count(factors.shape) != sizes.columns)
      return unknown_form(tensor, fmt::format("{} is no factor for each of {} inputs of a quantized matrix",
                                              factors.name, sizes.columns));
  }
  tensor.shape = shape;
  tensor.slices = sizes.slices;
  tensor.rows = sizes.rows;
  tensor.columns = sizes.columns;
  result.tensors.push_back(std::move(tensor));
}

bool StoredResolution::take_scale_type(LogicalTensor& tensor) {
  const CheckpointTensor& scale = stored(*tensor.scale);
  tensor.form.scales = scale.type == ElementType::U8 ? ElementType::F8_E8M0 : scale.type;
  switch (tensor.form.scales) {
    case ElementType::F32:
    case ElementType::BF16:
    case ElementType::F16: return true;
    case ElementType::F8_E8M0:
      if (tensor.form.kind == FormKind::scaled || tensor.form.kind == FormKind::fp4) return true;
      break;
    case ElementType::F8_E4M3:
      if (tensor.form.kind == FormKind::fp4) return true;
      break;
    default: break;
  }
  fault("stored.scale_type", scale.name, fmt::format("a scale cannot be {}", name(scale.type)));
  return false;
}

void StoredResolution::bad_grid(const LogicalTensor& tensor, const StoredShape& shape) {
  const CheckpointTensor& scale = stored(*tensor.scale);
  const auto block = configured_block(quantization_);
  const MatrixSizes m = as_matrices(shape);
  std::string wanted;
  if (block) {
    wanted = fmt::format("; {}x{} blocks of {} want [{}, {}]", block->rows, block->columns, shape_text(shape),
                         LogicalTensor::ceil_div(m.rows, block->rows),
                         LogicalTensor::ceil_div(m.columns, block->columns));
  }
  if (const auto group = configured_group(quantization_);
      !block && group && *group != 0 && tensor.form.kind == FormKind::packed)
    wanted = fmt::format("; {} inputs in groups of {}, as the config says, have {} scales a row", m.columns,
                         *group, LogicalTensor::ceil_div(m.columns, *group));
  fault("stored.scale_shape", scale.name,
        fmt::format("{} is no grid of scales over {} {}{}", shape_text(scale.shape), tensor.name,
                    shape_text(shape), wanted));
}

std::optional<AttentionSizes> StoredResolution::attention() {
  if (attention_) return *attention_;
  attention_.emplace();
  if (checkpoint_.config.empty()) return std::nullopt;
  const ParsedJson document = read_json(checkpoint_.config);
  *attention_ = attention_of(document);
  for (const ParsedJson* nest : language_model_nests(document)) {
    if (!*attention_) *attention_ = attention_of(*nest);
  }
  return *attention_;
}

std::optional<std::string> StoredResolution::small_tensor(std::uint32_t place, std::uint64_t most) {
  const CheckpointTensor& tensor = stored(place);
  if (tensor.bytes > most) return std::nullopt;
  if (!reader_) reader_ = std::make_unique<CheckpointReader>(checkpoint_);
  std::string bytes(tensor.bytes, '\0');
  reader_->read(tensor, 0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// --- what others see ---------------------------------------------------------------------------------------

std::vector<std::uint32_t> LogicalTensor::places() const {
  std::vector<std::uint32_t> all = {codes};
  for (const auto& place :
       {scale, global_scale, zeros, group_index, table, nested_table, nested_scale, input_factors}) {
    if (place) all.push_back(*place);
  }
  all.insert(all.end(), companions.begin(), companions.end());
  return all;
}

std::string form_name(const LogicalTensor& tensor) {
  const StoredForm& form = tensor.form;
  switch (form.kind) {
    case FormKind::plain: return std::string(name(form.codes));
    case FormKind::fp4: return form.scales == ElementType::F8_E8M0 ? "MXFP4" : "NVFP4";
    case FormKind::packed: return packed_name(tensor);
    case FormKind::codebook: return fmt::format("bitsandbytes 4-bit, {} a scale", form.codebook.block);
    case FormKind::scaled: break;
  }
  if (form.block_rows == 1 && form.block_columns == 32 && form.scales == ElementType::F8_E8M0) return "MXFP8";
  if (const auto& parts = details_of(tensor).parts; !parts.empty())
    return fmt::format("{} tensor, {} fused", name(form.codes), parts.size());
  if (form.block_rows == tensor.rows && form.block_columns == tensor.columns)
    return fmt::format("{} tensor", name(form.codes));
  if (form.block_rows == 1 && form.block_columns == tensor.columns)
    return fmt::format("{} channel", name(form.codes));
  return fmt::format("{} {}x{}", name(form.codes), form.block_rows, form.block_columns);
}

const FormDetails& details_of(const LogicalTensor& tensor) {
  static const FormDetails kNone;
  return tensor.composed == nullptr ? kNone : tensor.composed->details;
}

void set_details(LogicalTensor& tensor, FormDetails details) {
  tensor.composed = std::make_shared<const ComposedTensor>(ComposedTensor{{}, nullptr, std::move(details)});
}

StoredTensors find_stored(const Checkpoint& checkpoint,
                          const std::optional<QuantizationConfig>& quantization) {
  return Finder(checkpoint, quantization).run();
}

float largest_code_value(ElementType type) {
  if (type == ElementType::I8) return 127.0F;
  const FloatFormat* format = float_format(type);
  if (format == nullptr) throw Error::internal("no codes of this type are known");
  return decode(*format, format->max_code());
}

}  // namespace assay
