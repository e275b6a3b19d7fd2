#include "refimpl/ranks/rank_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/model/rank_weights.h"
#include "core/model/scale_cut.h"
#include "core/model/stage_parts.h"
#include "core/system/error.h"

namespace assay {
namespace {

bool is_vector(const TensorSpec& spec) {
  return spec.bias || spec.shape.size() <= 1;
}

std::uint64_t sum_of(const std::vector<PartitionedPart>& members) {
  std::uint64_t sum = 0;
  for (const PartitionedPart& member : members) sum += member.size;
  return sum;
}

std::uint64_t total(const std::vector<IndexRange>& ranges) {
  std::uint64_t sum = 0;
  for (const IndexRange& range : ranges) sum += range.size();
  return sum;
}

// RankFault::replicated_heads: as if every rank had heads of its own, from rank 0's again where they end.
void count_heads_wrongly(const std::vector<PartitionedPart>& members, std::uint64_t ranks, std::uint64_t rank,
                         RankShare& share) {
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < members.size() && share.ranges.size() == members.size(); ++i) {
    const std::uint64_t unit = members[i].size / members[i].units;
    if (members[i].units < ranks) share.ranges[i].begin = first + rank % members[i].units * unit;
    if (members[i].units < ranks) share.ranges[i].end = share.ranges[i].begin + unit;
    first += members[i].size;
  }
}

const TensorSpec* sibling(const Module& module, Role role) {
  for (const TensorSpec& spec : module.tensors)
    if (spec.role == role && !spec.bias) return &spec;
  return nullptr;
}

}  // namespace

ModuleTree RankCut::tree_of_rank(const ModuleTree& whole) {
  whole_ = &whole;
  const std::vector<std::string> refusals = refusals_to_run(whole, place_.grid);
  if (!refusals.empty())
    throw Error::input(
        fmt::format("{} cannot be cut into {}: {}{}", whole.family, place_.grid.text(), refusals.front(),
                    refusals.size() == 1 ? "" : fmt::format(" (and {} more)", refusals.size() - 1)));
  for_each_spec(whole, [&](const TensorSpec& spec, const Occurrence& where) {
    if (where.path.empty()) return;
    module_of_[&spec] = where.path.back();
    for (const Module* module : where.path)
      of_layers_[&spec] = of_layers_[&spec] || module->repeat.over == Repeat::Over::layers;
  });
  ModuleTree tree = whole;
  const std::size_t tp = place_.grid.tp;
  for (auto* geometries : {&tree.attention, &tree.mtp_attention}) {
    for (AttentionGeometry& g : *geometries) {
      g.heads /= tp;
      g.kv_heads = std::max<std::uint64_t>(1, g.kv_heads / tp);
    }
  }
  for (RecurrentGeometry& g : tree.recurrent) {
    g.heads /= tp;
    g.state_values /= tp;
  }
  return tree;
}

std::size_t RankCut::stored_layer(std::size_t layer) const {
  if (fault_ != RankFault::layer_offset || whole_ == nullptr) return layer;
  const IndexRange mine = layers();
  if (layer < mine.begin || layer >= mine.end) return layer;
  return layer - mine.begin + place_.stage() * (whole_->layers / place_.grid.pp);
}

bool RankCut::is_here(const TensorSpec& spec, const WeightKey& key) const {
  const RankGrid& grid = place_.grid;
  if (spec.part == Part::routed_expert && grid.ep > 1 &&
      key.expert / (whole_->experts / grid.ep) != place_.expert_group())
    return false;
  // Of a model in stages or copies nobody asks for guesses.
  if (key.layer >= whole_->layers) return grid.pp == 1 && grid.dp == 1;
  if (grid.pp == 1) return true;
  const auto in_layer = of_layers_.find(&spec);
  if (in_layer != of_layers_.end() && in_layer->second) {
    const IndexRange mine = layers();
    return key.layer >= mine.begin && key.layer < mine.end;
  }
  if (!feeds_first_layer(spec)) return place_.last_stage();
  const bool is_head = spec.role == Role::token_embedding && whole_->tied_embeddings;
  return place_.first_stage() || (is_head && place_.last_stage());
}

// As the tree has it, with members that say how this view lies: a file may keep parts of a fused matrix apart.
TensorSpec RankCut::spec_of(const WeightView& whole, const TensorSpec& spec, const WeightKey& key) const {
  TensorSpec own = spec;
  Parallel& parallel = own.parallel;
  if (parallel.partition == Partition::replicated || parallel.partition == Partition::vocabulary) return own;
  const bool inputs = parallel.partition == Partition::rows;
  const std::uint64_t size = is_vector(spec) ? whole.columns : inputs ? whole.inputs() : whole.outputs();
  if (sum_of(parallel.members) == size) return own;
  std::vector<PartitionedPart> members;
  for (const PartitionedPart& member : parallel.members)
    if (member.role == key.role && member.size == size) members = {member};
  const std::uint64_t units = parallel.members.empty() ? size : parallel.members.front().units;
  if (members.empty()) members = {{key.role, size, size % units == 0 ? units : size}};
  parallel.members = std::move(members);
  parallel.interleaved = false;
  return own;
}

WeightView RankCut::share_of(const WeightView& whole, const TensorSpec& spec, const WeightKey& key) {
  if (spec.storage == Storage::buffer) return whole;  // no weight: a table of whole numbers
  const Place at = {&spec, key.role, key.layer, key.expert, key.bias, key.half};
  if (const auto known = views_.find(at); known != views_.end()) return known->second;
  if (is_norm_of_other_head(spec, *whole_, key.layer, place_)) return {};
  const TensorSpec own = spec_of(whole, spec, key);
  const ParallelConfig grid = place_.cut_of(spec.part);
  const Partition partition = own.parallel.partition;
  const bool inputs = partition == Partition::rows, vector = is_vector(spec);
  const std::uint64_t size = vector ? whole.columns : inputs ? whole.inputs() : whole.outputs();
  std::uint64_t rank = place_.rank_of(spec.part);
  const auto& members = own.parallel.members;
  TensorSpec one = own;  // of one expert, which is known to be here
  one.stacked = 0;
  one.part = own.part;
  ParallelConfig within = grid;
  if (spec.part == Part::routed_expert) {
    within = {grid.ranks_of_an_expert(), 1};
    rank %= within.tp;
  }
  RankShare share = rank_share(one, *whole_, size, key.expert, within, rank);
  if (fault_ == RankFault::replicated_heads) count_heads_wrongly(members, within.tp, rank, share);
  Rectangle rectangle;
  rectangle.of_rows = !vector && inputs == whole.input_major;
  rectangle.padding = share.padding;
  rectangle.ranges = share.ranges;
  if (rectangle.ranges.empty()) rectangle.ranges = {{0, rectangle.of_rows ? whole.rows : whole.columns}};
  if (!is_here(spec, key)) return views_[at] = put_elsewhere(whole, rectangle, vector);
  const WeightView view = hold(whole, rectangle);
  const bool is_cut = cut_ranks(own, grid) > 1 || partition == Partition::rows;
  if (is_cut) {
    const std::uint64_t units = members.empty() ? size : members.front().units;
    cuts_[view.name] = {partition,
                        spec.part == Part::routed_expert,
                        size,
                        share.ranges.empty() ? 0 : share.ranges.front().begin,
                        total(rectangle.ranges) + share.padding,
                        units};
  }
  if (spec.role == Role::recurrent_norm && place_.grid.tp > 1) {
    const TensorSpec* in = sibling(*module_of_.at(&spec), Role::recurrent_in);
    for (const PartitionedPart& member : in == nullptr ? members : in->parallel.members)
      if (member.role == Role::k) norm_groups_[view.name] = whole.columns / member.units;
  }
  return views_[at] = view;
}

const WeightCut& RankCut::cut_of(const WeightView& view) const {
  static const WeightCut kWhole;
  const auto found = cuts_.find(view.name);
  return found == cuts_.end() ? kWhole : found->second;
}

std::size_t RankCut::whole_norm_group(const WeightView& norm) const {
  const auto found = norm_groups_.find(norm.name);
  return found == norm_groups_.end() ? 0 : found->second;
}

// ---------------------------------------------------------------------------------------------- memory

// A vector is zeros: models read some of them ahead, to compute with what they make of them.
WeightView RankCut::put_elsewhere(const WeightView& whole, const Rectangle& rectangle, bool vector) {
  auto name = std::make_unique<std::string>(*whole.name + ", which another rank holds");
  WeightView view = whole;
  view.name = name.get();
  (rectangle.of_rows ? view.rows : view.columns) = total(rectangle.ranges);
  view.codes = view.scales = nullptr;
  view.reader = nullptr;
  elsewhere_.emplace(view.name, std::move(name));
  if (!vector) return view;
  view.kind = FormKind::plain;
  view.type = ElementType::F32;
  view.row_bytes = view.columns * sizeof(float);
  view.codes = memory_.emplace_back(view.rows * view.row_bytes).data();
  return view;
}

std::vector<std::byte>& RankCut::memory(std::size_t bytes) {
  held_bytes_ += bytes;
  return memory_.emplace_back(bytes);
}

WeightView RankCut::hold(const WeightView& whole, const Rectangle& rectangle) {
  WeightView view = whole;
  view.reader = nullptr;
  view.reader_row = 0;
  (rectangle.of_rows ? view.rows : view.columns) = total(rectangle.ranges);
  if (whole.codes != nullptr && hold_codes(whole, rectangle, view)) return view;
  return hold_decoded(whole, rectangle);
}

namespace {

// Elements `ranges` of a row of blocks, as bytes; empty where a range ends within a block.
std::vector<IndexRange> bytes_of(ElementType type, const std::vector<IndexRange>& ranges) {
  std::vector<IndexRange> bytes;
  for (const IndexRange& range : ranges) {
    const auto begin = storage_bytes(type, range.begin), end = storage_bytes(type, range.end);
    if (!begin || !end) return {};
    bytes.push_back({*begin, *end});
  }
  return bytes;
}

// Rows `rows` of a matrix of rows of `row_bytes`, and of each of them the bytes `of_row`.
void copy_rectangle(const std::byte* from, std::uint64_t row_bytes, const std::vector<IndexRange>& rows,
                    const std::vector<IndexRange>& of_row, std::byte* to) {
  for (const IndexRange& some : rows) {
    for (std::uint64_t r = some.begin; r < some.end; ++r) {
      for (const IndexRange& range : of_row) {
        if (range.size() == 0) continue;
        std::memcpy(to, from + r * row_bytes + range.begin, range.size());
        to += range.size();
      }
    }
  }
}

}  // namespace

// The stored bytes themselves, where the borders are those of bytes.
bool RankCut::hold_codes(const WeightView& whole, const Rectangle& rectangle, WeightView& view) {
  const std::vector<IndexRange> rows =
      rectangle.of_rows ? rectangle.ranges : std::vector<IndexRange>{{0, whole.rows}};
  const std::vector<IndexRange> columns =
      rectangle.of_rows ? std::vector<IndexRange>{{0, whole.columns}} : rectangle.ranges;
  const std::vector<IndexRange> of_row = bytes_of(whole.type, columns);
  if (of_row.empty() || (whole.kind != FormKind::plain && whole.scales == nullptr)) return false;
  view.row_bytes = total(of_row);
  const std::uint64_t padding = rectangle.of_rows
                                    ? rectangle.padding * view.row_bytes
                                    : storage_bytes(whole.type, rectangle.padding).value_or(0) * view.rows;
  std::vector<std::byte>& codes = memory(view.rows * view.row_bytes + padding);
  copy_rectangle(whole.codes, whole.row_bytes, rows, of_row, codes.data());
  view.codes = codes.data();
  if (whole.kind != FormKind::plain) hold_scales(whole, rows, columns, view);
  return true;
}

void RankCut::hold_scales(const WeightView& whole, std::vector<IndexRange> rows,
                          const std::vector<IndexRange>& columns, WeightView& view) {
  for (IndexRange& range : rows) range.begin += whole.first_row, range.end += whole.first_row;
  const ScaleCut down = cut_scales(rows, whole.block_rows, whole.first_row + whole.rows);
  const ScaleCut across = cut_scales(columns, whole.block_columns, whole.columns);
  const std::uint64_t each = info(whole.scale_type).block_bytes;
  std::vector<std::byte>& scales = memory(down.from.size() * across.from.size() * each);
  std::byte* to = scales.data();
  for (const std::uint64_t r : down.from) {
    for (const std::uint64_t c : across.from) {
      std::memcpy(to, whole.scales + (r * whole.scale_columns + c) * each, each);
      to += each;
    }
  }
  view.scales = scales.data();
  view.first_row = 0;
  view.block_rows = down.block;
  view.block_columns = across.block;
  view.scale_columns = across.from.size();
  if (whole.global != GlobalScale::none) held_bytes_ += sizeof(float);
}

// Forms that only their readers decode, and borders within bytes or GGUF's blocks: as float32, which is what they stand for.
WeightView RankCut::hold_decoded(const WeightView& whole, const Rectangle& rectangle) {
  WeightView view;
  view.name = whole.name;
  view.input_major = whole.input_major;
  view.weight_only = whole.weight_only;
  view.rows = rectangle.of_rows ? total(rectangle.ranges) : whole.rows;
  view.columns = rectangle.of_rows ? whole.columns : total(rectangle.ranges);
  view.row_bytes = view.columns * sizeof(float);
  const std::uint64_t padded = rectangle.of_rows ? view.rows + rectangle.padding : view.rows;
  std::vector<std::byte>& codes = memory(padded * view.row_bytes);
  auto* to = reinterpret_cast<float*>(codes.data());
  std::vector<float> row(whole.columns);
  const auto put_row = [&](std::uint64_t r, const std::vector<IndexRange>& of_row) {
    decode_rows(whole, r, 1, row.data());
    for (const IndexRange& range : of_row)
      to = std::copy(row.begin() + static_cast<std::ptrdiff_t>(range.begin),
                     row.begin() + static_cast<std::ptrdiff_t>(range.end), to);
  };
  const std::vector<IndexRange> all = {{0, whole.columns}};
  if (rectangle.of_rows) {
    for (const IndexRange& range : rectangle.ranges)
      for (std::uint64_t r = range.begin; r < range.end; ++r) put_row(r, all);
  } else {
    for (std::uint64_t r = 0; r < whole.rows; ++r) put_row(r, rectangle.ranges);
  }
  view.codes = codes.data();
  return view;
}

}  // namespace assay
