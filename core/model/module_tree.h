// A model described once, as data: the module tree. Everything else asks it.
//
//   ModuleTree tree = describe(ModelConfig::read("config.json"));
//   count(tree).total                                      671026419200
//   for_each_tensor(tree, [](const std::string& name, const TensorSpec& spec) { … });   90,455 names in turn
//   TensorLookup(tree).find("model.layers.7.mlp.experts.3.up_proj.weight")
//
// A Module that occurs many times (a layer, an expert) is kept once, with the indices at which it occurs;
// tensor names hold "{layer}" and "{expert}" where the indices go. Shapes and names are those of the
// published checkpoint, before any quantization: how a weight is stored in fewer bits is
// core/model/stored_form's matter.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/model/config.h"
#include "core/model/hyperparameters.h"
#include "core/model/quantity.h"
#include "core/system/error.h"

namespace assay {

// What a tensor does. Norms that sit inside attention (q_norm…) are named apart from those of the block.
enum class Role {
  token_embedding,
  position_embedding,
  output_head,
  q,
  k,
  v,
  qkv,
  attention_output,
  q_norm,
  k_norm,
  sinks,
  q_a,
  q_a_norm,
  q_b,
  kv_a,
  kv_a_norm,
  kv_b,  // multi-head latent attention
  indexer_q,
  indexer_k,
  indexer_k_norm,
  indexer_weights,  // DeepSeek sparse attention
  compressor,       // DeepSeek V4: what makes one entry of the cache of several tokens
  attention_gate,   // its sigmoid scales the output of attention
  recurrent_in,
  recurrent_gate,
  recurrent_beta,
  recurrent_decay,
  recurrent_norm,
  recurrent_out,  // linear attention and state spaces (core/model/recurrent_blocks.h)
  convolution,
  decay,
  time_bias,
  skip,
  mlp_gate,
  mlp_up,
  mlp_gate_up,
  mlp_down,
  router,
  router_correction,
  router_scale,
  shared_expert_gate,
  latent_down,
  latent_norm,
  latent_up,       // experts that work in a narrower space than the layer
  embedding_norm,  // of what enters the first layer (BLOOM)
  input_norm,
  post_attention_norm,
  pre_feedforward_norm,
  post_feedforward_norm,
  final_norm,
  layer_scale,
  residual_mix,         // hyper-connections, residuals that attend to earlier ones
  per_layer_embedding,  // Gemma 3n, 4: an embedding of its own for each layer
  mtp_embedding_norm,
  mtp_hidden_norm,
  mtp_projection,  // multi-token prediction
  tower,           // whatever a vision or audio tower or its projector holds
  other,           // of an architecture nobody has described: its name tells nothing
  buffer,
};
std::string_view name(Role role);  // "q_a_norm"

// The row of a report that a tensor is counted in.
enum class Part {
  embedding,
  attention,
  dense_mlp,
  router,
  shared_expert,
  routed_expert,
  norm,
  output,
  mtp,
  vision,
  audio,
  projector,  // from a tower into the language model
  buffer,
};
std::string_view name(Part part);   // "routed_expert"
std::string_view title(Part part);  // "routed experts"

// Why a tensor of the checkpoint is, or is not, a parameter of its own.
enum class Storage {
  own,        // a parameter; it must be there
  tied,       // the same weights as `same_as`; usually absent, some checkpoints store it again
  duplicate,  // the same weights as `same_as`; published checkpoints do store it (MTP's embedding and head)
  buffer,     // no parameter, though some checkpoints hold it (rotary inv_freq, causal masks)
};

// How the tensor is cut over the ranks of a tensor-parallel group. A routed expert's cut applies after
// experts have been dealt out over expert-parallel ranks.
enum class Partition { replicated, columns, rows, vocabulary };
struct
    PartitionedPart {  // one of the matrices fused into a column-cut tensor; a plain one has a single member
  Role role;
  std::uint64_t size;   // along the cut dimension
  std::uint64_t units;  // indivisible pieces along it: attention heads; rows where any may be cut
};
struct Parallel {
  Partition partition = Partition::replicated;
  std::size_t dimension = 0;  // of the stored shape
  std::vector<PartitionedPart> members;
  // Members alternate unit by unit (q, k and v of one key head, then of the next), not one after the other:
  // one even cut deals out all of them.
  bool interleaved = false;
};

struct TensorSpec {
  std::string name;                  // "model.layers.{layer}.self_attn.q_proj.weight"
  std::vector<std::uint64_t> shape;  // as stored
  Quantity elements;                 // its count as a formula: in × out, whatever the stored order
  Role role = Role::buffer;
  Part part = Part::buffer;
  bool bias = false;  // the additive part of `role`
  Storage storage = Storage::own;
  std::string same_as;        // of a tied or duplicate tensor: the template of the one that counts
  bool quantizable = false;   // a matrix that quantized releases of the model do quantize
  bool tower_linear = false;  // a Linear of a tower or projector: some releases quantize these as well
  bool input_major = false;   // stored [in, out] (GPT-2's Conv1D, stacked experts), not [out, in]
  bool either_way = false;    // a stack [in, out] as published, and [out, in] as transformers 5 saves it
  std::uint64_t stacked = 0;  // experts stacked along dimension 0, of which…
  std::uint64_t stacked_active = 0;  // …so many compute for a token
  Parallel parallel;
};

struct Repeat {
  enum class Over { nothing, layers, experts } over = Over::nothing;
  std::vector<std::uint64_t> indices;  // ascending; what replaces {layer} or {expert}
  Quantity count = 1;                  // indices.size(), with its name
  std::uint64_t active = 1;            // of `count`, how many compute for a token
};

struct Module {
  std::string
      path;  // what it adds to its tensors' names: "self_attn", "experts.{expert}"; "" for a mere grouping
  std::string title;  // "attention (MLA)", for people
  Repeat repeat;
  std::vector<TensorSpec> tensors;
  std::vector<Module> children;
};

// How some layers attend, so that cache size and work can be derived without knowing the family.
struct AttentionGeometry {
  enum class Kind { heads, latent };  // heads: MHA, GQA and MQA, by kv_heads
  Kind kind = Kind::heads;
  std::vector<std::uint64_t> layers;
  std::uint64_t heads = 0, kv_heads = 0;
  std::uint64_t qk_head_dim = 0;  // latent: nope + rope
  std::uint64_t v_head_dim = 0;
  std::uint64_t rope_head_dim = 0;                  // latent only: the part cached beside the latent
  std::uint64_t q_lora_rank = 0, kv_lora_rank = 0;  // latent only; q_lora_rank 0: queries are not compressed
  bool kv_b_whole = false;   // latent only: a GGUF keeps kv_b_proj in one piece, not in halves
  std::uint64_t window = 0;  // 0: the whole context
  bool chunked = false;      // the window is a fixed chunk (Llama 4), not a sliding one
  std::uint64_t indexer_heads = 0, indexer_head_dim = 0, indexer_top_k = 0;
  bool keys_are_values = false;  // one vector a key head is cached (DeepSeek V4)
  bool cached = true;            // false: these layers read the cache of others (Gemma 4)
  // Beside the window, one entry for so many tokens (DeepSeek V4); 0: none. The indexer's cache likewise.
  std::uint64_t compressed = 0;
};

// What some layers keep of a sequence however long it is: linear attention, state spaces, short convolutions.
struct RecurrentGeometry {
  std::string title;  // "Gated DeltaNet"
  std::vector<std::uint64_t> layers;
  std::uint64_t heads = 0;         // the state is dealt out by them
  std::uint64_t conv_values = 0;   // (kernel - 1) × channels: the last inputs, in the type of activations
  std::uint64_t state_values = 0;  // in F32
};

// A part of the published model that this tree leaves out, with its parameters where the config tells them.
struct NotCounted {
  std::string what;  // "vision tower (SigLIP)"
  std::optional<std::uint64_t> parameters;
};

// Some checkpoints spell the start of every name differently: "" in openai-community/gpt2, "transformer."
// when saved again. TensorLookup accepts both.
struct PrefixAlias {
  std::string canonical, alternative;
};

struct ModuleTree {
  std::string family;        // "deepseek_v3": the registry's name
  std::string title;         // "DeepSeek V3 / R1 / V3.1, Kimi K2"
  std::string architecture;  // as the config spells it
  std::uint64_t hidden_size = 0, layers = 0, vocabulary = 0;
  std::uint64_t experts = 0, experts_per_token = 0;  // 0: a dense model
  bool tied_embeddings = false;
  bool derived = false;            // from names and shapes alone (core/model/derive_tree.h)
  std::vector<Module> modules;     // in the order of computation
  std::vector<Module> mtp;         // multi-token prediction layers, counted apart
  std::vector<Module> towers;      // vision, audio and projectors, counted apart: no text token meets them
  std::uint64_t vision_heads = 0;  // as vision_config has them; 0: it does not say
  std::vector<AttentionGeometry> attention;  // of the main layers; no layer is in two of them
  std::vector<RecurrentGeometry> recurrent;  // likewise; a layer may be in neither (an MLP alone)
  std::vector<AttentionGeometry> mtp_attention;
  std::vector<DefaultTaken> defaults;
  std::vector<NotCounted> not_counted;
  std::vector<PrefixAlias> aliases;
  // For hyperparameters(): or why there are none. What no forward pass can compute can still be counted.
  std::variant<Hyperparameters, Error> read_hyperparameters;
};

// Throws Error::input when the architecture is unknown (naming the closest families), or a key is missing,
// malformed or contradictory.
ModuleTree describe(const ModelConfig& config);

// Throws Error::input where the config says what cannot be, or nobody has described what the family's forward
// pass reads.
const Hyperparameters& hyperparameters(const ModuleTree& tree);

struct Totals {
  std::uint64_t total = 0;   // the language model: tied weights once, no buffers, no MTP, no towers
  std::uint64_t active = 0;  // of these, what computes for one token
  std::uint64_t active_without_embedding =
      0;                            // without the input lookup; a tied matrix stays, as output head
  std::uint64_t matmul_active = 0;  // without embedding, norms and biases: the basis of FLOPs
  std::uint64_t mtp_own = 0;
  std::uint64_t mtp_duplicates = 0;          // the embedding and head stored again for MTP
  std::uint64_t mtp_active = 0;              // of mtp_own
  std::uint64_t mtp_active_with_shared = 0;  // with the shared embedding and head it runs through
  std::uint64_t towers = 0;                  // vision, audio, projectors
  std::uint64_t all() const { return total + mtp_own + towers; }  // of a checkpoint, duplicates aside
};
Totals count(const ModuleTree& tree);

// Parameters of a module, all its repetitions included; tied, duplicate and buffer tensors are none.
std::uint64_t parameters(const Module& module);
// The arithmetic behind parameters(): one repetition, or all of them ("58 × (…)"). Value 0: it has none of
// its own.
Quantity formula_of_one(const Module& module);
Quantity formula(const Module& module);

// Where a tensor stands: how often it occurs, and how often that computes.
struct Occurrence {
  std::vector<const Module*> path;  // outermost first
  std::uint64_t copies = 1;
  std::uint64_t active_copies = 1;
  bool mtp = false;
  bool tower = false;
  bool main() const { return !mtp && !tower; }  // of the language model itself
};
std::uint64_t active_elements(const TensorSpec& spec, const Occurrence& where);  // over all its copies
// Every TensorSpec once, in tree order.
void for_each_spec(const ModuleTree& tree,
                   const std::function<void(const TensorSpec&, const Occurrence&)>& visit);

// The indices that make a concrete name of a template.
struct TensorIndices {
  std::uint64_t layer = 0, expert = 0;
};
std::string expand(std::string_view name_template, const TensorIndices& indices);
// Every concrete tensor, buffers and duplicates included; `name` is reused from call to call.
void for_each_tensor(
    const ModuleTree& tree,
    const std::function<void(const std::string& name, const TensorSpec& spec, const TensorIndices&)>& visit);

// From a concrete name back to its spec, without expanding the tree.
class TensorLookup {
 public:
  explicit TensorLookup(const ModuleTree& tree);  // which must outlive this
  struct Found {
    const TensorSpec* spec;
    TensorIndices indices;
    bool mtp;
    bool tower;
  };
  std::optional<Found> find(std::string_view name) const;

 private:
  // A number in a name: of a layer, of an expert, or one that is always the same ("proj.0").
  struct Slot {
    enum class Of { layers, experts, nothing } of = Of::nothing;
    std::uint64_t fixed = 0;
  };
  struct Entry {
    const TensorSpec* spec;
    std::vector<Slot> slots;                     // in the order of the name
    std::vector<std::uint64_t> layers, experts;  // the indices it occurs at
    bool mtp, tower;
    std::optional<TensorIndices> indices_of(const std::vector<std::uint64_t>& numbers) const;
  };
  static std::vector<Slot> slots_of(std::string_view name_template);
  std::optional<Found> find_exactly(std::string_view name) const;
  std::unordered_map<std::string, std::vector<Entry>> entries_;  // by the name with every index as {}
  const ModuleTree& tree_;
};

}  // namespace assay
