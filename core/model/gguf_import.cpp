#include "core/model/gguf_import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/model/gguf_keys.h"
#include "core/model/gguf_mirror.h"
#include "core/model/gguf_names.h"
#include "core/model/gguf_rules.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostRopeFactors = 4096;
constexpr std::string_view kRopeFactors = "rope_freqs.weight";

class Importer {
 public:
  Importer(const Checkpoint& gguf, const GgufFamily& family, const StoredTensors& stored,
           const ModuleTree& tree)
      : family_(family), source_(gguf.files.front().path), stored_(stored), tree_(tree) {
    for (std::uint32_t i = 0; i < stored.tensors.size(); ++i) places_.emplace(stored.tensors[i].name, i);
  }

  std::vector<DerivedTensor> run(std::vector<std::string>& left_out) {
    for_each_tensor(tree_, [&](const std::string& name, const TensorSpec& spec, const TensorIndices& at) {
      if (spec.storage == Storage::buffer) return;
      take(name, spec, at);
    });
    for (const auto& [name, place] : places_) {
      if (!used_.contains(name) && name != kRopeFactors) left_out.push_back(name);
    }
    return std::move(made_);
  }

 private:
  std::optional<std::uint32_t> find(const std::string& name) {
    const auto found = places_.find(name);
    if (found == places_.end()) return std::nullopt;
    used_[name] = true;
    return found->second;
  }

  void take(const std::string& name, const TensorSpec& spec, const TensorIndices& at) {
    if (spec.role == Role::kv_b && !spec.bias && merge_latent(name, spec, at)) return;
    const std::vector<std::string> candidates = gguf_names(spec, at.layer, &family_);
    for (const std::string& candidate : candidates) {
      const auto place = find(candidate);
      if (!place) continue;
      DerivedTensor tensor{.name = name, .shape = spec.shape};
      const std::uint64_t rows = tensor.rows();
      const bool one_of_many = spec.name.find("{expert}") != std::string::npos;
      tensor.pieces = {{*place, one_of_many ? at.expert * rows : 0, rows}};
      if (family_.paired_heads && (spec.role == Role::q || spec.role == Role::k)) {
        tensor.order = HeadRows::halves_from_pairs;
        tensor.head_rows = tree_.attention.front().qk_head_dim;
      }
      check_shape(tensor, one_of_many ? tree_.experts * rows : rows);
      made_.push_back(std::move(tensor));
      return;
    }
    if (spec.storage == Storage::own && spec.part != Part::mtp && tree_.mtp.empty()) {
      throw Error::input("is missing").in(source_).tensor(candidates.empty() ? name : candidates.front());
    }
  }

  void check_shape(const DerivedTensor& tensor, std::uint64_t rows) const {
    const LogicalTensor& source = stored_.tensors[tensor.pieces.front().source];
    if (source.all_rows() == rows && source.columns == tensor.columns()) return;
    throw Error::input("its shape is not what the metadata say").in(source_).tensor(source.name);
  }

  // The two halves of kv_b_proj, one transposed, head by head.
  bool merge_latent(const std::string& name, const TensorSpec& spec, const TensorIndices& at) {
    const auto keys = find(fmt::format("blk.{}.attn_k_b.weight", at.layer));
    const auto values = find(fmt::format("blk.{}.attn_v_b.weight", at.layer));
    if (!keys || !values) return false;
    const AttentionGeometry& g = tree_.attention.front();
    const std::uint64_t nope = g.qk_head_dim - g.rope_head_dim;
    const LogicalTensor &k = stored_.tensors[*keys], &v = stored_.tensors[*values];
    const bool fits = k.all_rows() == g.heads * g.kv_lora_rank && k.columns == nope &&
                      v.all_rows() == g.heads * g.v_head_dim && v.columns == g.kv_lora_rank;
    if (!fits) throw Error::input("its shape is not what the metadata say").in(source_).tensor(k.name);
    DerivedTensor tensor{.name = name, .shape = spec.shape};
    for (std::uint64_t head = 0; head < g.heads; ++head) {
      tensor.pieces.push_back({*keys, head * g.kv_lora_rank, g.kv_lora_rank, true});
      tensor.pieces.push_back({*values, head * g.v_head_dim, g.v_head_dim});
    }
    made_.push_back(std::move(tensor));
    return true;
  }

  const GgufFamily& family_;
  const fs::path& source_;
  const StoredTensors& stored_;
  const ModuleTree& tree_;
  std::map<std::string, std::uint32_t> places_;
  std::map<std::string, bool> used_;
  std::vector<DerivedTensor> made_;
};

}  // namespace

const GgufFamily* family_of_gguf(const Checkpoint& gguf) {
  return family_of_gguf(GgufSaid(*gguf.gguf, gguf.files.front().path, gguf.tensors));
}

std::vector<DerivedTensor> hf_tensors(const Checkpoint& gguf, const GgufFamily& family,
                                      const StoredTensors& stored, const ModelConfig& config,
                                      const ModuleTree& tree, std::vector<std::string>& left_out) {
  if (!is_mirrored(family)) return Importer(gguf, family, stored, tree).run(left_out);
  const GgufSaid said(*gguf.gguf, gguf.files.front().path, gguf.tensors);
  return mirrored_tensors(config, tree, family, said, stored, left_out);
}

std::vector<float> rope_factors(const Checkpoint& gguf, const StoredTensors& stored) {
  const auto found = std::find_if(stored.tensors.begin(), stored.tensors.end(),
                                  [](const LogicalTensor& tensor) { return tensor.name == kRopeFactors; });
  if (found == stored.tensors.end()) return {};
  if (found->all_rows() != 1 || found->columns == 0 || found->columns > kMostRopeFactors)
    throw Error::input("is no list of factors on rotary frequencies")
        .in(gguf.files.front().path)
        .tensor(found->name);
  const CheckpointReader source(gguf);
  std::vector<float> factors(found->columns);
  StoredReader(source, *found).decode_rows(0, 1, factors);
  return factors;
}

namespace {

// A key that changes numbers must have its say in config.json.
void check_keys(const Checkpoint& gguf, const GgufFamily& family, std::vector<std::string>& notes) {
  const ModelConfig config = ModelConfig::from_gguf(*gguf.gguf, gguf.files.front().path, gguf.tensors);
  const ConfigKeys carried = family.carried;
  require_gguf_keys(gguf, config, carried,
                    fmt::format("which the config.json of a {} cannot say", family.hf_class));
  if (const auto names = unread_gguf_keys(gguf, config, carried); !names.empty())
    notes.push_back(fmt::format("not read, and so not in config.json: {}", fmt::join(names, ", ")));
}

}  // namespace

HfModel import_gguf(const Checkpoint& gguf, const StoredTensors& stored, ElementType type) {
  HfModel model;
  const GgufFamily* family = family_of_gguf(gguf);
  if (family == nullptr) {
    model.notes.push_back(
        fmt::format("architecture \"{}\" is not known here: tensors keep their GGUF names, and there is no "
                    "config.json",
                    gguf.gguf->text("general.architecture").value_or("")));
    for (std::uint32_t i = 0; i < stored.tensors.size(); ++i)
      model.tensors.push_back(whole(stored.tensors[i].name, stored, i));
  } else {
    if (!is_mirrored(*family)) check_keys(gguf, *family, model.notes);
    model.family = family->family;
    const ParsedJson said = hf_config(gguf, *family, stored, type, model);
    const ModelConfig config = ModelConfig::from_json(said, gguf.files.front().path);
    model.tensors = hf_tensors(gguf, *family, stored, config, describe(config), model.left_out);
    model.files.emplace_back("config.json", said.dump(2) + "\n");
  }
  for (auto& file : hf_tokenizer(*gguf.gguf, model.notes)) model.files.push_back(std::move(file));
  return model;
}

}  // namespace assay
