// The pieces decoders are made of. A family file picks pieces and gives them its checkpoint's names; paths
// and tensor names here are relative, and describe() joins them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/module_tree.h"

namespace assay::blocks {

// A matrix in -> out, "name.weight" and, with a bias, "name.bias".
struct Linear {
  std::string name;
  Quantity in, out;
  Role role;
  Part part;
  Partition partition = Partition::replicated;
  std::uint64_t units = 0;  // indivisible pieces along the cut: heads; 0: any row may be cut
  std::vector<PartitionedPart> members = {};  // of a fused matrix; empty: the matrix alone
  bool bias = false;
  bool quantizable = true;
  bool input_major = false;  // stored [in, out]
  bool interleaved = false;  // members alternate, as Parallel::interleaved has it
};
void add_linear(Module& module, const Linear& linear);

// "name.weight" [width] and, for a LayerNorm that has one, "name.bias".
void add_norm(Module& module, const std::string& name, const Quantity& width, Role role, bool bias = false,
              Part part = Part::norm);
// A bare vector or table of its own, its name written out.
TensorSpec parameter(std::string name, const std::vector<Quantity>& shape, Role role, Part part);
// A tensor that checkpoints may hold and no model counts.
void add_buffer(Module& module, std::string name, std::vector<std::uint64_t> shape);

// Self-attention with heads: MHA, GQA, MQA.
enum class QkNorm { none, per_head, full_width };
struct HeadAttention {
  Quantity hidden, heads, kv_heads, head_dim;
  QkNorm qk_norm = QkNorm::none;
  bool qkv_bias = false, output_bias = false;
  bool sinks = false;
  bool input_major = false;
  bool interleaved = false;  // the rows of `fused` are grouped by key head
  bool gated_q = false;    // q holds for each head its rows, then those of a gate of its output (Qwen3-Next)
  bool wide_gate = false;  // `gate` has a value for each of a head's, not one a head
  bool has_k = true, has_v = true;  // Gemma 4: values may be keys, and keys those of another layer
  std::string path = "self_attn";
  std::string q = "q_proj", k = "k_proj", v = "v_proj", o = "o_proj", q_norm = "q_norm", k_norm = "k_norm";
  std::string fused = {};                   // one matrix of q, k and v rows; replaces q, k, v
  std::optional<Quantity> v_head_dim = {};  // absent: head_dim
  std::string gate = {};                    // a matrix of gates of the heads' outputs (Step 3.5)
  std::string sinks_name = "sinks";
};
Module attention(const HeadAttention& a);
AttentionGeometry geometry(const HeadAttention& a, std::vector<std::uint64_t> layers,
                           std::uint64_t window = 0);

// Multi-head latent attention (DeepSeek-V2 paper, §2.1).
struct LatentAttention {
  Quantity hidden, heads;
  std::optional<Quantity> q_rank;  // absent: queries are projected directly
  Quantity kv_rank, nope_dim, rope_dim, v_dim;
  bool bias = false;
  std::string gate = {};  // a matrix of gates, one for each value that goes into o_proj (Kimi K3)
};
Module attention(const LatentAttention& a);
AttentionGeometry geometry(const LatentAttention& a, std::vector<std::uint64_t> layers);

// Feed-forward networks. `part` says whether it is the dense MLP, a shared or a routed expert.
struct GatedMlp {  // down(act(gate(x)) * up(x))
  Quantity hidden, intermediate;
  std::string path = "mlp";
  Part part = Part::dense_mlp;
  bool bias = false;
  std::string gate = "gate_proj", up = "up_proj", down = "down_proj";  // gate "": down(act(up(x)))
  std::string fused = {};  // one matrix of gate and up rows; replaces gate, up
};
Module gated_mlp(const GatedMlp& m);
struct PlainMlp {  // down(act(up(x)))
  Quantity hidden, intermediate;
  std::string path = "mlp";
  bool bias = true;
  bool input_major = false;
  std::string up = "c_fc", down = "c_proj";
};
Module plain_mlp(const PlainMlp& m);

struct Experts {
  Quantity count;
  std::uint64_t active = 0;
};
// `count` copies of `one`, whose path becomes "experts.{expert}" or what `path` says.
Module routed_experts(const GatedMlp& one, const Quantity& count, std::uint64_t active,
                      std::string path = "experts.{expert}");
// All experts of a layer in one tensor each: gate and up together [experts, 2 × width, hidden], or [experts, hidden,
// 2 × width] where input_major; down [experts, hidden, width] or [experts, width, hidden].
struct StackedExperts {
  Quantity hidden, width;
  Experts experts;
  bool input_major = false;
  bool either_way = false;  // see TensorSpec
  std::string path = "experts";
  std::string gate_up = "gate_up_proj", down = "down_proj";
  std::string gate = {}, up = {};  // given: two tensors in place of gate_up
};
Module stacked_experts(const StackedExperts& s);
// The matrix that scores experts: never quantized, never cut.
void add_router(Module& module, const std::string& name, const Quantity& hidden, const Quantity& experts,
                bool bias = false);

// Router, routed experts, and the shared expert every token also visits.
struct Mixture {
  Quantity hidden;
  Experts experts;
  Quantity expert_width;
  std::string path = "mlp";
  std::string router = "gate";
  std::string correction = {};     // DeepSeek-V3's bias for choosing experts: its name, where there is one
  bool correction_is_row = false;  // stored [1, experts]
  bool shared_bias = false;        // of the shared expert's matrices
  std::optional<Quantity> shared_width = {};
  std::string shared_path = "shared_experts";
  bool shared_gate = false;  // Qwen2-MoE scales the shared expert by a gate of its own
  std::string gate = "gate_proj", up = "up_proj", down = "down_proj";  // gate "": experts of two matrices
  enum class Stacks { none, output_major, input_major, either_way } stacks = Stacks::none;
  std::string stacks_path = "experts", stacked_gate_up = "gate_up_proj", stacked_down = "down_proj";
  // LatentMoE: routed experts work in a space of this width, between two projections of the layer's; the shared
  // expert stays outside.
  std::optional<Quantity> latent = {};
  std::string latent_down = "fc1_latent_proj", latent_up = "fc2_latent_proj", latent_norm = {};
  bool latent_bias = false;                                     // of both projections
  std::optional<std::array<std::string, 3>> shared_names = {};  // gate, up, down; absent: as the routed ones'
};
Module mixture(const Mixture& m);

Module embedding(std::string path, const Quantity& vocabulary, const Quantity& hidden);
// Untied: a matrix of its own, with a bias where the family has one. Tied: named, and not counted.
Module output_head(std::string path, const Quantity& vocabulary, const Quantity& hidden, bool tied,
                   const std::string& embedding_name, bool bias = false);
Module norm(std::string path, const Quantity& width, Role role, bool bias = false);

// Everything around the layers: embedding, final norm, output head.
struct Frame {
  std::string embedding = "model.embed_tokens", final_norm = "model.norm", head = "lm_head";
  bool norm_bias = false, head_bias = false;
};
// "model.language_model." puts its embedding and final norm under that prefix.
Frame frame_under(const std::string& prefix, std::string head = "lm_head");
struct Decoder;
void add_frame(ModuleTree& tree, const Decoder& d, std::vector<Module> layers, const Frame& frame = {});

// DeepSeek-V3's multi-token prediction: `layer` with a projection of [embedding, hidden state] in front and a
// norm behind; embedding and head are stored again with it (DeepSeek-V3, README_WEIGHTS.md).
void add_mtp(ModuleTree& tree, const Decoder& d, Module layer, const std::string& embedding_name,
             const std::string& head_name);

// MTP's projection of [embedding, hidden state] and its norms under the names given; "" leaves one out.
struct MtpOwn {
  std::string embedding_norm = "enorm", hidden_norm = "hnorm", projection = "eh_proj",
              final_norm = "shared_head.norm";
};
Module mtp_own(const Quantity& hidden, const MtpOwn& names);
// Embedding or head, stored again: the same weights as `original`.
TensorSpec stored_again(std::string name, const Decoder& d, Role role, Part part, std::string original);
// Layers behind the last, those that `g` is of: both norms, `blocks`, MTP's own with its final_layernorm.
void add_mtp_layers(ModuleTree& tree, const Decoder& d, AttentionGeometry g, std::vector<Module> blocks);
// `count` layers like `layer` under "mtp", between one projection, fc, with norms in front and one norm behind.
void add_mtp_under_fc(ModuleTree& tree, const Decoder& d, AttentionGeometry g, std::uint64_t count,
                      std::vector<Module> blocks);

// Both norms of a pre-norm layer, under the names most checkpoints give them.
void add_pre_norms(Module& layer, const Quantity& hidden, bool bias = false);
// An empty module for the layers with these indices.
Module layers(std::string path, std::string title, std::vector<std::uint64_t> indices);
// One module for each kind of layer: layers with the same title hold the same tensors, which `fill` adds, told the
// first of them. In the order of those first layers.
std::vector<Module> group_layers(const std::string& path, const Quantity& count,
                                 const std::function<std::string(std::uint64_t layer)>& title_of,
                                 const std::function<void(Module& module, std::uint64_t layer)>& fill);
std::vector<std::uint64_t> all_layers(const Quantity& count);
std::vector<std::uint64_t> layers_where(const Quantity& count,
                                        const std::function<bool(std::uint64_t)>& holds);

// The sizes every decoder has, with the class defaults of one family. intermediate 0: it has no dense MLP, and the key
// is not asked for.
struct DecoderDefaults {
  std::uint64_t vocabulary, hidden, intermediate, layers, heads;
  std::optional<std::uint64_t> kv_heads = {};  // absent: as many as heads
  std::optional<std::uint64_t> head_dim = {};  // absent: hidden / heads
  bool tied = false;
};
struct Decoder {
  Quantity vocabulary, hidden, intermediate, layers, heads, kv_heads, head_dim;
  bool tied;
  HeadAttention attention() const { return {hidden, heads, kv_heads, head_dim}; }
  GatedMlp mlp() const { return {hidden, intermediate}; }
};
// Latent attention has head sizes of its own, and head_dim says nothing about it.
enum class HeadDim { used, unused };
Decoder read_decoder(ConfigReader& config, ModuleTree& tree, const DecoderDefaults& defaults,
                     HeadDim head_dim = HeadDim::used);
// For families with names of their own: the number of layers, bounded; and the sizes into the tree.
Quantity read_layers(ConfigReader& config, std::string_view keys, std::uint64_t class_default);
void note_sizes(ModuleTree& tree, const Decoder& d);
std::uint64_t read_mtp_layers(ConfigReader& config, std::uint64_t class_default);
// The indices of `extra` layers behind the last.
std::vector<std::uint64_t> layers_after(const Quantity& count, std::uint64_t extra);
// Reads experts and experts a token, which must not exceed them, into the tree.
Experts read_experts(ConfigReader& config, ModuleTree& tree, std::string_view count_keys, std::uint64_t count,
                     std::string_view active_keys, std::uint64_t active);
// A list with an entry for each layer. What a longer one has behind (of MTP, or of layers that were cut off) is left out,
// but where `whole` asks for it. nullopt: the config has none.
std::optional<std::vector<std::string>> layer_texts(ConfigReader& config, std::string_view key,
                                                    const Quantity& layers, bool whole = false);
std::optional<std::vector<std::uint64_t>> layer_numbers(ConfigReader& config, std::string_view key,
                                                        const Quantity& layers, bool whole = false);
// Which layers look at a window only, by layer_types where the config has it, else by `otherwise`.
std::vector<std::uint64_t> windowed_layers(ConfigReader& config, const Quantity& layers,
                                           const std::function<bool(std::uint64_t)>& otherwise);
// For `otherwise`: all but every so many layers, as `key` has it. Beside layer_types the key may hold what is no number.
std::function<bool(std::uint64_t layer)> all_but_every(ConfigReader& config, std::string_view key,
                                                       std::uint64_t class_default);
// Splits the geometry into layers with the window and layers without.
void add_geometry(ModuleTree& tree, const HeadAttention& a, const Quantity& layers,
                  const std::vector<std::uint64_t>& windowed, std::uint64_t window);

}  // namespace assay::blocks
