#include "convert/gguf_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "convert/gguf_repacked.h"
#include "convert/layout.h"
#include "convert/output_check.h"
#include "convert/reshard.h"
#include "convert/tensor_recipe.h"
#include "core/formats/gguf_write.h"
#include "core/formats/imatrix.h"
#include "core/model/gguf_export.h"
#include "core/model/gguf_general.h"
#include "core/model/gguf_import.h"
#include "core/model/gguf_loaded.h"
#include "core/model/gguf_rules.h"
#include "core/model/gguf_tokenizer.h"
#include "core/model/open_model.h"
#include "core/model/published_layout.h"
#include "core/model/stored_checks.h"
#include "core/system/error.h"
#include "core/system/finding_error.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::uint64_t kQuantizationVersion = 2;  // GGML_QNT_VERSION
constexpr std::uint64_t kDefaultShard = 5'000'000'000;

// Types that the converter writes itself; all others are llama-quantize's, of a file in 16 bits.
bool is_converters_own(GgufFileType type) {
  return type == GgufFileType::F32 || type == GgufFileType::F16 || type == GgufFileType::BF16 ||
         type == GgufFileType::Q8_0;
}

std::string file_name(const fs::path& out) {
  return fs::absolute(out).lexically_normal().filename().string();
}

std::vector<std::uint64_t> ggml_order(const std::vector<std::uint64_t>& shape) {
  if (shape.empty()) return {1};
  return {shape.rbegin(), shape.rend()};
}

class GgufPlanner {
 public:
  GgufPlanner(const fs::path& in, const fs::path& out, const ConvertOptions& options, const GgufOptions& gguf)
      : in_(in),
        out_(out),
        options_(options),
        gguf_(gguf),
        recipe_(gguf.tensor_types, gguf.tensor_types_file) {
    if (!options.include.empty() || !options.exclude.empty() || !options.scales_from.empty())
      throw Error::usage("--include, --exclude and --scales-from do not go with GGUF");
    if (options.mtp != Mtp::keep || options.merge || options.grid.tp > 1 || options.grid.ep > 1)
      throw Error::usage("--drop-mtp, --only-mtp, --tp, --ep and --merge do not go with GGUF");
    plan_.checkpoint = open_checkpoint(in, options.jobs);
    throw_first_error(plan_.checkpoint.findings, in);
    plan_.stored = find_stored(plan_.checkpoint, read_quantization(plan_.checkpoint));
    throw_first_error(plan_.stored.findings, in);
    plan_.gguf = true;
  }

  ConversionPlan run() {
    const bool from_gguf = plan_.checkpoint.container == Checkpoint::Container::gguf;
    const auto type = gguf_spec(options_.to);
    if (from_gguf) check_whole();
    const bool quantizes = type && !keeps_fp4(*type) && info(gguf_default_type(*type)).block_elements > 1;
    if (!recipe_.empty() && !quantizes)
      throw Error::usage("--tensor-type goes with a quantized GGUF: --to gguf:q8_0 and below");
    if (!gguf_.imatrix.empty() && !quantizes)
      throw Error::usage("--imatrix goes with a quantized GGUF: --to gguf:q6_k and below");
    if (!gguf_.imatrix.empty()) importance_ = read_imatrix(gguf_.imatrix);
    if (type && from_gguf)
      requantize(*type);
    else if (type)
      export_model(*type);
    else
      import_model();
    for (const DerivedOutput& output : plan_.derived) output.made.check(plan_.stored);
    return std::move(plan_);
  }

 private:
  void check_whole() const {
    const auto split = plan_.checkpoint.gguf->split();
    if (!split || plan_.checkpoint.files.size() == split->count) return;
    throw Error::input(fmt::format("{} of {} splits are here", plan_.checkpoint.files.size(), split->count))
        .in(in_)
        .remedy("bring the others");
  }

  // --- safetensors -> GGUF ---------------------------------------------------------------------------------

  void export_model(GgufFileType type) {
    if (plan_.checkpoint.config.empty()) {
      throw Error::refused(
          "a GGUF's names and keys follow from the architecture, and there is no config.json")
          .in(in_);
    }
    const DescribedModel said = describe_model(plan_.checkpoint);
    const ModelConfig& config = said.config;
    const ModuleTree& tree = said.tree;
    const GgufFamily* family = gguf_family_of(tree);
    if (family == nullptr) {
      throw Error::refused(fmt::format("{} is not among the families that are written as GGUF", tree.title))
          .in(plan_.checkpoint.config)
          .remedy("docs/gguf.md lists them");
    }
    plan_.stored = under_published_names(std::move(plan_.stored), tree);
    std::vector<GgufTensor> tensors = gguf_tensors(config, tree, *family, plan_.checkpoint, plan_.stored);
    if (!tree.mtp.empty())
      plan_.notes.push_back("multi-token prediction is left out: llama.cpp has no place for it");
    if (!tree.towers.empty())
      plan_.notes.push_back(
          "vision, audio and projectors are left out: llama.cpp keeps them in a file of their own (mmproj)");
    const fs::path folder = plan_.checkpoint.root;
    auto keys = gguf_general(folder, config, family->architecture, tensors);
    const auto early = gguf_early_keys(config, *family);
    keys.insert(keys.begin() + 1, early.begin(), early.end());
    const auto of_tensors = gguf_tensor_keys(tree, *family, plan_.checkpoint, plan_.stored);
    keys.insert(keys.begin() + 1, of_tensors.begin(), of_tensors.end());
    for (auto& key : gguf_hyperparameters(config, *family, stored_number(type)))
      gguf::set_value(keys, std::move(key));
    require_loadable(family->architecture, tree, tensors, keys);
    if (std::string note = windows_left_out(family->architecture, tree, keys); !note.empty())
      plan_.notes.push_back(std::move(note));
    gguf::set_value(keys, gguf::u32_value("general.quantization_version", kQuantizationVersion));
    for (auto& key : gguf_tokenizer(folder, config, *family, gguf_.tokenizer_pre))
      gguf::set_value(keys, std::move(key));

    plan_.spec.text = fmt::format("GGUF {}", name(type));
    plan_.roles_from = fmt::format("the module tree of {}", tree.family);
    std::vector<DerivedOutput> made;
    if (keeps_fp4(type))
      return write_gguf(repacked_tensors(plan_, gguf_rules(*family), std::move(tensors), type, in_),
                        std::move(keys), gguf::kDefaultAlignment);
    for (GgufTensor& tensor : tensors) {
      const bool kept_f32 = tensor.always_f32 || quantized_apart(type);
      const ElementType kept = tensor.whole_numbers ? ElementType::I32
                               : kept_f32           ? ElementType::F32
                                                    : converters_type(tensor.made, type);
      made.push_back({std::move(tensor.made), kept});
    }
    if (quantized_apart(type)) {
      as_llama_quantize_has_it(keys, type);
      choose_types(made, keys, type);
      take_importance(made, keys);
    }
    write_gguf(std::move(made), std::move(keys), gguf::kDefaultAlignment);
  }

  // By llama-quantize, of the file in float32.
  bool quantized_apart(GgufFileType type) const {
    return (!is_converters_own(type) && !keeps_fp4(type)) || !recipe_.empty() || importance_;
  }

  static ElementType converters_type(const DerivedTensor& tensor, GgufFileType type) {
    const ElementType wanted = gguf_default_type(type);
    return tensor.columns() % info(wanted).block_elements == 0 ? wanted : ElementType::F16;
  }

  // --- GGUF -> GGUF ----------------------------------------------------------------------------------------

  void requantize(GgufFileType type) {
    if (keeps_fp4(type))
      throw Error::usage(fmt::format("--to gguf:{}: moves the FP4 of safetensors; this is a GGUF already",
                                     lower_case(name(type))))
          .remedy("--to gguf:mxfp4_moe quantizes");
    std::vector<DerivedOutput> made;
    for (std::uint32_t i = 0; i < plan_.stored.tensors.size(); ++i) {
      const LogicalTensor& tensor = plan_.stored.tensors[i];
      made.push_back({whole(tensor.name, plan_.stored, i), tensor.form.codes});
    }
    auto keys = plan_.checkpoint.gguf->metadata;
    as_llama_quantize_has_it(keys, type);
    choose_types(made, keys, type);
    for (const DerivedOutput& tensor : made) check_requantization(tensor);
    take_importance(made, keys);
    plan_.spec.text = fmt::format("GGUF {}", name(type));
    write_gguf(std::move(made), std::move(keys), plan_.checkpoint.gguf->alignment);
  }

  void check_requantization(const DerivedOutput& tensor) const {
    const LogicalTensor& source = plan_.stored.tensors[tensor.made.pieces.front().source];
    const bool quantized = info(source.form.codes).block_elements > 1;
    const bool kept = source.form.codes == tensor.type && !source.composed;
    if (!quantized || kept || gguf_.allow_requantize) return;
    throw Error::refused(fmt::format("is {} already; {} made of it is worse than made of the original",
                                     name(source.form.codes), name(tensor.type)))
        .tensor(source.name)
        .remedy("convert the original, or accept the loss with --allow-requantize");
  }

  void take_importance(std::vector<DerivedOutput>& made, std::vector<gguf::KeyValue>& keys) {
    if (!importance_) return;
    weigh(made);
    note_importance(keys);
  }

  static void as_llama_quantize_has_it(std::vector<gguf::KeyValue>& keys, GgufFileType type) {
    gguf::move_to_end(keys, gguf::u32_value("general.quantization_version", kQuantizationVersion));
    gguf::move_to_end(keys, gguf::u32_value("general.file_type", stored_number(type)));
    for (const char* key : {"split.no", "split.count", "split.tensors.count"}) gguf::remove_key(keys, key);
  }

  void choose_types(std::vector<DerivedOutput>& made, const std::vector<gguf::KeyValue>& keys,
                    GgufFileType type) const {
    std::vector<std::string> names;
    for (const DerivedOutput& tensor : made) names.push_back(tensor.made.name);
    recipe_.check_used(names);
    std::stable_sort(made.begin(), made.end(), [](const DerivedOutput& a, const DerivedOutput& b) {
      return gguf_tensor_order(a.made.name, b.made.name);
    });
    std::vector<MixTensor> tensors;
    for (DerivedOutput& tensor : made) {
      auto& shape = tensor.made.shape;  // ggml counts no dimensions of 1 beyond the last larger one
      while (shape.size() > 1 && shape.front() == 1) shape.erase(shape.begin());
      tensors.push_back({tensor.made.name, ggml_order(shape), tensor.type});
    }
    const std::vector<ElementType> types =
        gguf_mix(type, mix_model(keys), tensors,
                 {.by_hand = [&](std::string_view name) { return recipe_.type_of(name); },
                  .importance = importance_.has_value()});
    for (std::size_t i = 0; i < made.size(); ++i) made[i].type = types[i];
  }

  // What the matrix says of a tensor that is quantized; the embedding's is looked up, not multiplied.
  void weigh(std::vector<DerivedOutput>& made) {
    std::uint64_t without = 0, with = 0;
    for (DerivedOutput& tensor : made) {
      if (info(tensor.type).block_elements == 1) continue;
      const auto found = importance_->entries.find(tensor.made.name);
      if (found == importance_->entries.end()) {
        ++without;
        continue;
      }
      const auto& shape = tensor.made.shape;
      const std::uint64_t matrices = shape.size() == 3 ? shape.front() : 1;
      ++with;
      if (found->second.size() == matrices * tensor.made.columns())
        tensor.importance = found->second;
      else if (tensor.made.name != "token_embd.weight")
        throw Error::refused(fmt::format("the importance matrix has {} values, the tensor {} columns{}",
                                         found->second.size(), tensor.made.columns(),
                                         matrices > 1 ? fmt::format(" of {} experts", matrices) : ""))
            .in(gguf_.imatrix)
            .tensor(tensor.made.name)
            .remedy("take the matrix of this model");
    }
    if (with == 0)
      throw Error::refused("has no entry for any tensor that is quantized")
          .in(gguf_.imatrix)
          .remedy("take the matrix of this model");
    if (without > 0)
      plan_.notes.push_back(
          fmt::format("{} tensors are quantized without importance: the matrix has no entry", without));
  }

  void note_importance(std::vector<gguf::KeyValue>& keys) const {
    gguf::set_value(keys, gguf::text_value("quantize.imatrix.file", gguf_.imatrix));
    if (!importance_->dataset.empty())
      gguf::set_value(keys, gguf::text_value("quantize.imatrix.dataset", importance_->dataset));
    gguf::set_value(keys, gguf::u32_value("quantize.imatrix.entries_count", importance_->entries.size()));
    if (importance_->chunks > 0)
      gguf::set_value(keys, gguf::u32_value("quantize.imatrix.chunks_count", importance_->chunks));
  }

  static MixModel mix_model(const std::vector<gguf::KeyValue>& keys) {
    gguf::Header header;
    header.metadata = keys;
    MixModel model;
    model.architecture = header.text("general.architecture").value_or("");
    const auto number = [&](std::string_view name) {
      const std::string key = fmt::format("{}.{}", model.architecture, name);
      const gguf::KeyValue* found = header.find(key);
      const auto* array = found == nullptr ? nullptr : std::get_if<gguf::Array>(&found->value);
      if (array != nullptr && array->count > 0)
        return static_cast<std::uint32_t>(std::clamp<std::int64_t>(array->integers().front(), 0, UINT32_MAX));
      return static_cast<std::uint32_t>(std::min<std::uint64_t>(header.number(key).value_or(0), UINT32_MAX));
    };
    model.layers = number("block_count");
    model.mtp_layers = number("nextn_predict_layers");
    model.experts = number("expert_count");
    model.heads = number("attention.head_count");
    model.heads_kv = number("attention.head_count_kv");
    return model;
  }

  // --- the files of a GGUF ---------------------------------------------------------------------------------

  // Parts as gguf-py's writer cuts them: the next tensor begins a new file where it would not fit.
  std::vector<std::vector<DerivedOutput>> split(std::vector<DerivedOutput> made, std::uint64_t limit) const {
    std::vector<std::vector<DerivedOutput>> parts(1);
    std::uint64_t bytes = 0;
    for (DerivedOutput& tensor : made) {
      const auto elements = element_count(tensor.made.shape);
      const std::uint64_t size = storage_bytes(tensor.type, elements.value_or(0)).value_or(0);
      if (limit != 0 && !parts.back().empty() && size > limit - std::min(limit, bytes)) {
        parts.emplace_back();
        bytes = 0;
      }
      bytes += size;
      parts.back().push_back(std::move(tensor));
    }
    return parts;
  }

  void write_gguf(std::vector<DerivedOutput> made, std::vector<gguf::KeyValue> keys,
                  std::uint64_t alignment) {
    plan_.is_folder = false;
    const std::size_t tensors = made.size();
    auto parts = split(std::move(made), options_.max_shard_size);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::vector<gguf::KeyValue> own = std::exchange(keys, {});  // the first part has them
      if (parts.size() > 1) {
        own.push_back(gguf::u16_value("split.no", i));
        own.push_back(gguf::u16_value("split.count", parts.size()));
        own.push_back(gguf::i32_value("split.tensors.count", static_cast<std::int64_t>(tensors)));
      }
      OutputShard& file = add_file(part_name(i, parts.size()), std::move(parts[i]));
      std::vector<gguf::Tensor> infos;
      for (const OutputTensor& tensor : file.tensors)
        infos.push_back({tensor.name, tensor.type, ggml_order(tensor.shape)});
      const std::uint64_t data = gguf::place_tensors(infos, alignment);
      file.header = gguf::serialize_header(own, infos, alignment);
      file.bytes = file.header.size() + data;
      for (std::size_t t = 0; t < infos.size(); ++t) {
        file.tensors[t].offset = file.header.size() + infos[t].offset;
        file.tensors[t].bytes = infos[t].bytes;
      }
    }
    sum_up(plan_);
  }

  OutputShard& add_file(std::string name, std::vector<DerivedOutput> tensors) {
    OutputShard& file = plan_.shards.emplace_back();
    file.name = std::move(name);
    for (DerivedOutput& tensor : tensors) {
      const auto place = static_cast<std::uint32_t>(plan_.derived.size());
      file.tensors.push_back(
          {tensor.made.name, tensor.type, tensor.made.shape, OutputTensor::Source::derived, place});
      plan_.derived.push_back(std::move(tensor));
    }
    return file;
  }

  std::string part_name(std::size_t part, std::size_t parts) const {
    std::string whole = file_name(out_);
    if (parts == 1) return whole;
    const std::string stem = whole.ends_with(".gguf") ? whole.substr(0, whole.size() - 5) : whole;
    return fmt::format("{}-{:05}-of-{:05}.gguf", stem, part + 1, parts);
  }

  // --- GGUF -> safetensors ---------------------------------------------------------------------------------

  void import_model() {
    const auto type = element_type_from_text(options_.to);
    const bool offered =
        type && (*type == ElementType::F32 || *type == ElementType::F16 || *type == ElementType::BF16);
    if (!offered) {
      throw Error::usage(
          fmt::format("--to {}: of a GGUF, bf16, f16, f32 and gguf:TYPE can be made", options_.to))
          .remedy("convert to bf16 first, and then on");
    }
    HfModel model = import_gguf(plan_.checkpoint, plan_.stored, *type);
    plan_.notes = std::move(model.notes);
    check_left_out(model);
    plan_.texts = std::move(model.files);
    plan_.roles_from = model.family.empty() ? "" : fmt::format("the module tree of {}", model.family);
    plan_.spec.text = fmt::format("safetensors {}", name(*type));
    std::vector<DerivedOutput> made;
    for (DerivedTensor& tensor : model.tensors) {
      const ElementType of_tensor = type_of(tensor, *type);
      made.push_back({std::move(tensor), of_tensor});
    }
    write_safetensors(std::move(made));
    hold_against_config();
  }

  // A table of whole numbers stays one, of torch's width.
  ElementType type_of(const DerivedTensor& tensor, ElementType type) const {
    const auto source = tensor.same_as(plan_.stored);
    if (source && plan_.stored.tensors[*source].form.codes == ElementType::I32) return ElementType::I64;
    return tensor.name.ends_with("e_score_correction_bias") ? ElementType::F32 : type;
  }

  void hold_against_config() const {
    const auto config = std::find_if(plan_.texts.begin(), plan_.texts.end(),
                                     [](const auto& text) { return text.first == "config.json"; });
    if (config == plan_.texts.end()) return;
    throw_first_refusal(check_output_against_config(plan_, out_, config->second, false));
  }

  static void throw_first_refusal(const Findings& findings) {
    for (const Finding& finding : findings) {
      if (finding.severity == Severity::error)
        throw Error::refused(finding.message).tensor(finding.tensor).remedy(finding.remedy);
    }
  }

  void check_left_out(const HfModel& model) {
    if (model.left_out.empty()) return;
    constexpr std::size_t kNamed = 5;
    const std::span named(model.left_out.data(), std::min(kNamed, model.left_out.size()));
    const std::string what = fmt::format("{} tensor{} no place in a {}: {}{}", model.left_out.size(),
                                         model.left_out.size() == 1 ? " has" : "s have", model.family,
                                         fmt::join(named, ", "), model.left_out.size() > kNamed ? ", …" : "");
    if (!gguf_.drop_unknown)
      throw Error::refused(what).in(in_).remedy(
          "the result is another model without: --drop-unknown makes it");
    plan_.notes.push_back(what + "; left out, as --drop-unknown says");
  }

  void write_safetensors(std::vector<DerivedOutput> made) {
    auto parts =
        split(std::move(made), options_.max_shard_size != 0 ? options_.max_shard_size : kDefaultShard);
    for (std::size_t i = 0; i < parts.size(); ++i)
      add_file(numbered_shard("model", i + 1, parts.size()), std::move(parts[i])).metadata = {
          {"format", "pt"}};
    lay_out(plan_, options_.jobs);
  }

  const fs::path &in_, &out_;
  const ConvertOptions& options_;
  const GgufOptions& gguf_;
  TensorRecipe recipe_;
  std::optional<ImportanceMatrix> importance_;
  ConversionPlan plan_;
};

}  // namespace

ConversionPlan make_gguf_plan(const fs::path& in, const fs::path& out, const ConvertOptions& options,
                              const GgufOptions& gguf) {
  return GgufPlanner(in, out, options, gguf).run();
}

}  // namespace assay
