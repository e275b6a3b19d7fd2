// A model's weights by what they do, whatever file holds them: safetensors in shards or GGUF, mapped into
// memory, in the stored precision.
//
//   const Weights weights("DeepSeek-V3", jobs);
//   WeightView q = weights.get({.role = Role::q_a, .layer = 7});          // [q_lora_rank, hidden]
//   if (WeightView b = weights.find({.role = Role::q, .layer = 7, .bias = true})) …
//
// The module tree of the config says which tensors there must be and in which shape. In GGUF some weights are
// cut or fused otherwise: there ask find() for both forms (Role::qkv, else q, k and v; mlp_gate_up of stacked
// experts, else mlp_gate and mlp_up; kv_b, else the halves k_b and v_b below).
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/config.h"
#include "core/model/gguf_as_checkpoint.h"
#include "core/model/module_tree.h"
#include "core/model/stored_form.h"
#include "core/model/stored_reader.h"
#include "refimpl/models/mapped_file.h"
#include "refimpl/models/weight_shares.h"
#include "refimpl/ops/weight_view.h"
#include "refimpl/step/layer_groups.h"

namespace assay {

struct WeightKey {
  Role role = Role::token_embedding;
  // Tells apart what bears the same role: Part::dense_mlp, shared_expert and routed_expert of the MLP; the
  // MTP layer's own final norm (Part::mtp). Unset: whichever the layer has.
  std::optional<Part> part = {};
  std::size_t layer = 0;   // MTP layers come after the main ones
  std::size_t expert = 0;  // of routed experts, one by one or stacked
  bool bias = false;
  // Which of several in one module: the low-rank pairs and the convolutions of q, k and v of Kimi's delta attention,
  // from 0 on. GGUF: kv_b in halves. 1: attn_k_b [heads · kv_rank, nope], 2: attn_v_b [heads · v, kv_rank].
  int half = 0;
};

class Weights {
 public:
  // Opens the checkpoint, its config (config.json beside it, or GGUF's metadata), and holds the headers
  // against the module tree: throws Error::input when something is missing, misshapen or not understood.
  // With `shares` what it shows is a rank's; they outlive it.
  Weights(const std::filesystem::path& path, int jobs, WeightShares* shares = nullptr);
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  const ModelConfig& config() const { return *config_; }
  const ModuleTree& tree() const { return shares_ == nullptr ? tree_ : tree_of_rank_; }
  const ModuleTree& whole_tree() const { return tree_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  bool from_gguf() const { return checkpoint_.container == Checkpoint::Container::gguf; }
  // Before a model is made of them (layer_regrouping.h).
  Weights& regroup(const LayerGroups& groups);
  // How many weights are codes of one of these types with scales.
  std::size_t count_scaled(std::span<const ElementType> codes) const;
  std::uint64_t bytes() const;  // of all files

  // An empty view where the checkpoint has no such weight. The output head of a tied model is its embedding.
  WeightView find(const WeightKey& key) const;
  // Throws Error::input naming the tensor that is missing.
  WeightView get(const WeightKey& key) const;

  // The config ties the head to the embedding, and the file holds a head that differs from it.
  bool has_own_head() const;

  // By its name in the file: tables that are no weights (rope_freqs.weight).
  WeightView find_named(std::string_view name) const;

  // Throws Error::input when a file changed since it was opened.
  void check_unchanged() const;

 private:
  using Place = std::tuple<int, int, std::size_t, bool, int>;  // role, part, layer, bias, half
  // Places in stored_.tensors: one, whose slices are the experts where there are any, or one an expert.
  struct Entry {
    std::vector<std::size_t> tensors;
    bool input_major = false, experts_are_rows = false;
    std::size_t rows_of_expert = 0;  // DBRX: so many rows of one matrix are an expert's
    const TensorSpec* spec = nullptr;
  };
  void index_safetensors();
  void index_gguf();
  // Weights of a GGUF that lie otherwise than a checkpoint's, and are taken as they lie.
  void index_as_they_lie(std::span<const std::optional<GgufAsCheckpoint::Seen>> seen);
  WeightView view(std::size_t tensor, std::size_t slice, bool input_major) const;
  WeightView whole(const Entry& entry, const WeightKey& key) const;
  const Entry* entry(const WeightKey& key) const;

  std::optional<ModelConfig> config_;
  ModuleTree tree_;
  WeightShares* shares_ = nullptr;
  ModuleTree tree_of_rank_;  // where there are shares
  Checkpoint checkpoint_;
  StoredTensors stored_;
  std::unique_ptr<CheckpointReader> reader_;
  std::vector<std::unique_ptr<StoredReader>> stored_readers_;
  std::vector<MappedFile> files_;
  std::map<Place, Entry> entries_;
};

}  // namespace assay
