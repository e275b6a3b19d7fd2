#include "refimpl/models/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/model/expert_layout.h"
#include "core/model/gguf_import.h"
#include "core/model/gguf_names.h"
#include "core/model/gguf_rules.h"
#include "core/model/open_model.h"
#include "core/model/reconcile.h"
#include "core/numeric/codec.h"
#include "core/system/error.h"
#include "core/system/finding_error.h"
#include "refimpl/models/layer_regrouping.h"

namespace assay {
namespace {

constexpr Part kParts[] = {Part::embedding,     Part::attention,     Part::dense_mlp, Part::router,
                           Part::shared_expert, Part::routed_expert, Part::norm,      Part::output,
                           Part::mtp,           Part::buffer};

// That the config does not declare how weights are stored, or declares what they are not, leads other loaders
// astray: the stored names say it here.
Findings without_declarations(Findings findings) {
  std::erase_if(findings, [](const Finding& f) {
    return f.code.starts_with("model.quantization_") || f.code == "stored.form_differs";
  });
  return findings;
}

// Where GGUF keeps a fused weight in parts, the part's own role.
struct GgufPart {
  Role role;
  int half = 0;
};
GgufPart gguf_part(Role role, std::string_view name) {
  const auto holds = [&](std::string_view stem) { return name.find(stem) != std::string_view::npos; };
  if (role == Role::qkv && holds(".attn_q.")) return {Role::q};
  if (role == Role::qkv && holds(".attn_k.")) return {Role::k};
  if (role == Role::qkv && holds(".attn_v.")) return {Role::v};
  if (role == Role::mlp_gate_up && holds(".ffn_gate_exps.")) return {Role::mlp_gate};
  if (role == Role::mlp_gate_up && holds(".ffn_up_exps.")) return {Role::mlp_up};
  if (role == Role::kv_b && holds(".attn_k_b.")) return {role, 1};
  if (role == Role::kv_b && holds(".attn_v_b.")) return {role, 2};
  return {role};
}

// Families that are computed from a GGUF's own names and orders of rows, as llama.cpp has them: the first to be, before
// GGUFs could be seen as checkpoints.
constexpr std::string_view kTakenAsStored[] = {
    "llama",   "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "deepseek_v2", "deepseek_v3",
    "kimi_k2", "gemma2",  "gemma3",  "phi3",  "olmo2", "gpt2",      "gpt_oss",     "minicpm3"};

bool is_taken_as_stored(const ModuleTree& tree, const Checkpoint& gguf) {
  // OLMo 3 has the architecture of OLMo 2.
  const GgufFamily* family = family_of_gguf(gguf);
  if (family != nullptr && is_mirrored(*family) && family->family != tree.family) return false;
  return std::find(std::begin(kTakenAsStored), std::end(kTakenAsStored), tree.family) !=
         std::end(kTakenAsStored);
}

// Of each tensor, how many of its role stand before it in the same module: WeightKey::half.
std::map<const TensorSpec*, int> numbers_of_role(const ModuleTree& tree) {
  std::map<const TensorSpec*, int> numbers;
  std::map<std::tuple<const Module*, Role, Part, bool>, int> counts;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    const Module* module = where.path.empty() ? nullptr : where.path.back();
    numbers.emplace(&spec, counts[{module, spec.role, spec.part, spec.bias}]++);
  });
  return numbers;
}

// Layers of multi-token prediction have numbers of their own, from 0 on, or those behind the main ones.
bool predicts_from_zero(const ModuleTree& tree) {
  bool found = false;
  for_each_spec(tree, [&](const TensorSpec&, const Occurrence& where) {
    for (const Module* module : where.path) {
      const Repeat& repeat = module->repeat;
      if (where.mtp && repeat.over == Repeat::Over::layers && !repeat.indices.empty())
        found = found || *std::min_element(repeat.indices.begin(), repeat.indices.end()) == 0;
    }
  });
  return found;
}

}  // namespace

Weights::Weights(const std::filesystem::path& path, int jobs, WeightShares* shares)
    : shares_(shares), checkpoint_(open_checkpoint(path, jobs)) {
  throw_first_error(checkpoint_.findings, path);
  DescribedModel said = describe_model(checkpoint_);
  const bool as_checkpoint = from_gguf() && !is_taken_as_stored(said.tree, checkpoint_);
  config_ = std::move(said.config);
  tree_ = in_layout_of(std::move(said.tree), checkpoint_);
  const Reconciliation reconciled = reconcile(tree_, *config_, checkpoint_);
  if (!reconciled.complete())
    throw Error::input(fmt::format("only {} of {} files of the model are here", reconciled.shards_here,
                                   reconciled.shards_told))
        .in(path);
  throw_first_error(without_declarations(reconciled.findings), path);
  std::vector<std::optional<GgufAsCheckpoint::Seen>> seen;
  if (as_checkpoint) {
    GgufAsCheckpoint whole = gguf_as_checkpoint(checkpoint_);
    config_ = std::move(whole.config);
    tree_ = std::move(whole.tree);
    stored_ = std::move(whole.stored);
    seen = std::move(whole.seen);
    checkpoint_.container = Checkpoint::Container::safetensors;  // from here on it is one
  } else {
    stored_ = find_stored(checkpoint_, config_->quantization());
  }
  throw_first_error(stored_.findings, path);
  reader_ = std::make_unique<CheckpointReader>(checkpoint_);
  for (const CheckpointFile& file : checkpoint_.files) files_.emplace_back(file.path);
  for (const LogicalTensor& tensor : stored_.tensors)
    stored_readers_.push_back(std::make_unique<StoredReader>(*reader_, tensor));
  from_gguf() ? index_gguf() : index_safetensors();
  if (as_checkpoint) index_as_they_lie(seen);
  if (shares_ != nullptr) tree_of_rank_ = shares_->tree_of_rank(tree_);
}

void Weights::index_safetensors() {
  const TensorLookup lookup(tree_);
  const std::map<const TensorSpec*, int> numbers = numbers_of_role(tree_);
  const bool from_zero = predicts_from_zero(tree_);
  for (std::size_t i = 0; i < stored_.tensors.size(); ++i) {
    const auto found = lookup.find(stored_.tensors[i].name);
    if (!found || found->tower || found->spec->storage == Storage::buffer) continue;
    const TensorSpec& spec = *found->spec;
    const auto number = numbers.find(&spec);
    // Layers of multi-token prediction come after the main ones, however they are numbered; so does what stands around them.
    const bool shifted = found->mtp && (from_zero || found->indices.layer < tree_.layers);
    const std::size_t layer = found->indices.layer + (shifted ? tree_.layers : 0);
    Entry& entry = entries_[{static_cast<int>(spec.role), static_cast<int>(spec.part), layer, spec.bias,
                             number == numbers.end() ? 0 : number->second}];
    entry.spec = &spec;
    // MXFP4 experts are stored [out, in], whatever the order of the floats they stand for.
    const StoredForm& form = stored_.tensors[i].form;
    entry.input_major = spec.input_major && (form.kind != FormKind::fp4 || form.transposed);
    entry.experts_are_rows = spec.stacked != 0 && spec.bias;
    if (spec.stacked != 0 && !spec.bias && spec.shape.size() == 2)
      entry.rows_of_expert = spec.shape[0] / spec.stacked;
    const bool of_experts =
        spec.part == Part::routed_expert || spec.name.find("{expert}") != std::string::npos;
    const std::size_t place = of_experts && spec.stacked == 0 ? found->indices.expert : 0;
    if (entry.tensors.size() <= place) entry.tensors.resize(place + 1, stored_.tensors.size());
    entry.tensors[place] = i;
  }
}

void Weights::index_as_they_lie(std::span<const std::optional<GgufAsCheckpoint::Seen>> seen) {
  const TensorLookup lookup(tree_);
  for (const bool placing : {false, true}) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const auto found = seen[i] ? lookup.find(stored_.tensors[i].name) : std::nullopt;
      if (!found) continue;
      const TensorSpec& spec = *found->spec;
      const Role role = placing ? seen[i]->role : spec.role;
      const Place place = {static_cast<int>(role), static_cast<int>(spec.part), found->indices.layer,
                           spec.bias, 0};
      if (placing)
        entries_[place] = Entry{{i}, seen[i]->input_major, spec.stacked != 0 && spec.bias, 0, &spec};
      else
        entries_.erase(place);
    }
  }
}

void Weights::index_gguf() {
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < stored_.tensors.size(); ++i) by_name.emplace(stored_.tensors[i].name, i);
  for_each_spec(tree_, [&](const TensorSpec& spec, const Occurrence& where) {
    if (spec.storage == Storage::buffer || where.tower) return;
    std::vector<std::uint64_t> layers = {0};
    for (const Module* module : where.path) {
      if (module->repeat.over == Repeat::Over::layers) layers = module->repeat.indices;
    }
    for (const std::uint64_t layer : layers) {
      bool taken = false;
      for (const std::string& name : gguf_names(spec, layer)) {
        const auto found = by_name.find(name);
        const GgufPart part = gguf_part(spec.role, name);
        const bool is_part = part.role != spec.role || part.half != 0;
        if (found == by_name.end() || (taken && !is_part)) continue;
        entries_[{static_cast<int>(part.role), static_cast<int>(spec.part), layer, spec.bias, part.half}] =
            Entry{{found->second}, false, spec.part == Part::routed_expert && spec.bias, 0, &spec};
        taken = true;
      }
    }
  });
}

std::size_t Weights::count_scaled(std::span<const ElementType> codes) const {
  return static_cast<std::size_t>(
      std::count_if(stored_.tensors.begin(), stored_.tensors.end(), [&](const LogicalTensor& t) {
        return t.form.kind == FormKind::scaled &&
               std::find(codes.begin(), codes.end(), t.form.codes) != codes.end();
      }));
}

std::uint64_t Weights::bytes() const {
  std::uint64_t sum = 0;
  for (const CheckpointFile& file : checkpoint_.files) sum += file.bytes;
  return sum;
}

const Weights::Entry* Weights::entry(const WeightKey& key) const {
  for (const Part part : kParts) {
    if (key.part && *key.part != part) continue;
    const auto found =
        entries_.find({static_cast<int>(key.role), static_cast<int>(part), key.layer, key.bias, key.half});
    if (found != entries_.end()) return &found->second;
  }
  return nullptr;
}

WeightView Weights::find(const WeightKey& key) const {
  WeightKey stored = key;
  if (shares_ != nullptr) stored.layer = shares_->stored_layer(key.layer);
  const Entry* found = entry(stored);
  if (found == nullptr && key.role == Role::output_head && tree_.tied_embeddings && !key.bias)
    return find({.role = Role::token_embedding});
  if (found == nullptr) return {};
  const WeightView view = whole(*found, stored);
  return shares_ != nullptr && view ? shares_->share_of(view, *found->spec, key) : view;
}

WeightView Weights::whole(const Entry& found, const WeightKey& key) const {
  const bool one_an_expert = found.tensors.size() > 1;
  const std::size_t place = one_an_expert ? key.expert : 0;
  if (place >= found.tensors.size() || found.tensors[place] >= stored_.tensors.size()) return {};
  const std::size_t tensor = found.tensors[place];
  // Biases of stacked experts are the rows of a matrix; their matrices are slices.
  if (found.rows_of_expert != 0)
    return view(tensor, 0, found.input_major)
        .row_range(key.expert * found.rows_of_expert, found.rows_of_expert);
  if (found.experts_are_rows) return view(tensor, 0, false).row_range(key.expert, 1);
  if (key.half != 0 || key.role == Role::convolution) {  // a matrix a head, or a row a channel, on end
    WeightView all = view(tensor, 0, false);
    all.rows *= stored_.tensors[tensor].slices;
    return all;
  }
  return view(tensor, one_an_expert ? 0 : key.expert, found.input_major);
}

WeightView Weights::get(const WeightKey& key) const {
  const WeightView view = find(key);
  if (view) return view;
  throw Error::input(fmt::format("layer {} has no {}{}", key.layer, name(key.role), key.bias ? " bias" : ""))
      .in(checkpoint_.root);
}

bool Weights::has_own_head() const {
  if (!tree_.tied_embeddings || entry({.role = Role::output_head}) == nullptr) return false;
  const WeightView head = find({.role = Role::output_head}), table = find({.role = Role::token_embedding});
  const bool alike = head.codes != nullptr && table.codes != nullptr && head.kind == FormKind::plain &&
                     table.kind == FormKind::plain && head.type == table.type && head.rows == table.rows &&
                     head.row_bytes == table.row_bytes;
  return !alike || std::memcmp(head.codes, table.codes, head.rows * head.row_bytes) != 0;
}

WeightView Weights::find_named(std::string_view name) const {
  for (std::size_t i = 0; i < stored_.tensors.size(); ++i) {
    if (stored_.tensors[i].name != name) continue;
    const WeightView whole = view(i, 0, false);
    if (shares_ == nullptr) return whole;
    const auto found = TensorLookup(tree_).find(name);
    if (!found) return whole;
    return shares_->share_of(
        whole, *found->spec,
        {.role = found->spec->role, .layer = found->indices.layer, .bias = found->spec->bias});
  }
  return {};
}

WeightView Weights::view(std::size_t place, std::size_t slice, bool input_major) const {
  const LogicalTensor& tensor = stored_.tensors[place];
  if (slice >= tensor.slices)
    throw Error::input("holds fewer experts than the model has").tensor(tensor.name);
  WeightView view;
  view.name = &tensor.name;
  view.rows = tensor.rows;
  view.columns = tensor.columns;
  view.input_major = input_major && tensor.shape.size() > 1;
  view.kind = tensor.form.kind;
  view.type = tensor.form.codes;
  view.block_rows = tensor.form.block_rows;
  view.block_columns = tensor.form.block_columns;
  view.reader = stored_readers_[place].get();
  view.reader_row = slice * tensor.rows;
  // gpt-oss: codes lie transposed, and are taken as they lie.
  const bool transposed = view.kind == FormKind::fp4 && tensor.form.transposed;
  if (transposed) {
    std::swap(view.rows, view.columns);
    std::swap(view.block_rows, view.block_columns);
    view.input_major = !view.input_major;
  }
  const bool known =
      view.kind == FormKind::plain || view.kind == FormKind::scaled || view.kind == FormKind::fp4;
  const bool direct = known && transposed == tensor.form.transposed && tensor.form.scale_factor == 1 &&
                      tensor.composed == nullptr && !tensor.input_factors;
  const auto row_bytes = storage_bytes(tensor.form.codes, view.columns);
  if (!direct || !row_bytes) return view;
  const CheckpointTensor& codes = checkpoint_.tensors[tensor.codes];
  view.row_bytes = *row_bytes;
  view.codes = files_[codes.file].bytes().data() + codes.offset + slice * view.rows * *row_bytes;
  if (!tensor.scale) return view;
  const CheckpointTensor& scales = checkpoint_.tensors[*tensor.scale];
  view.scale_type = tensor.form.scales;
  view.scale_columns = transposed ? tensor.scale_rows() : tensor.scale_columns();
  view.scales = files_[scales.file].bytes().data() + scales.offset +
                slice * tensor.scale_rows() * tensor.scale_columns() * info(view.scale_type).block_bytes;
  view.global = tensor.form.global;
  if (tensor.global_scale) {
    const CheckpointTensor& global = checkpoint_.tensors[*tensor.global_scale];
    decode(global.type, files_[global.file].bytes().subspan(global.offset, global.bytes), &view.global_scale);
  }
  return view;
}

Weights& Weights::regroup(const LayerGroups& groups) {
  assay::regroup(tree_, groups);
  return *this;
}

void Weights::check_unchanged() const {
  require_mapped();
  for (const MappedFile& file : files_) {
    if (file.file().identity_now() != file.file().identity())
      throw Error::input("changed while it was read").in(file.file().path());
  }
}

}  // namespace assay
