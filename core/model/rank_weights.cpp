#include "core/model/rank_weights.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/model/scale_cut.h"
#include "core/model/stage_parts.h"
#include "core/system/text.h"

namespace assay {
namespace {

// What a rank has of one matrix of a tensor, or of a vector; of stacked experts each is one.
struct RankMatrix {
  std::vector<std::uint64_t> whole, mine;  // shapes as stored; mine with rows of zeros
  std::size_t dimension = 0;
  std::vector<IndexRange> ranges;  // along it
};

RankMatrix matrix_of_rank(const TensorSpec& spec, const ModuleTree& tree, const RankPlace& place) {
  RankMatrix matrix;
  TensorSpec one = spec;
  one.stacked = 0;
  matrix.dimension = spec.parallel.dimension;
  matrix.whole = spec.shape;
  if (spec.stacked != 0) {
    const bool rows_of_all = matrix.whole[0] != spec.stacked;  // one expert's behind the other's (DBRX)
    if (rows_of_all) {
      matrix.whole[0] /= spec.stacked;
      if (matrix.dimension == 0 && !one.parallel.members.empty()) one.parallel.members.resize(1);
    } else {
      matrix.whole.erase(matrix.whole.begin());
      matrix.dimension -= std::min<std::size_t>(matrix.dimension, 1);
    }
  }
  matrix.mine = matrix.whole;
  if (matrix.whole.empty()) return matrix;
  const std::uint64_t size = matrix.whole.at(matrix.dimension);
  matrix.ranges = {{0, size}};
  const bool routed = spec.part == Part::routed_expert;
  const std::uint64_t ranks = routed ? place.grid.ranks_of_an_expert() : place.grid.tp;
  const RankShare share =
      rank_share(one, tree, size, 0, {ranks, 1}, routed ? place.in_stage() % ranks : place.in_tp());
  if (share.ranges.empty()) return matrix;
  matrix.ranges = share.ranges;
  matrix.mine[matrix.dimension] = share.padding;
  for (const IndexRange& range : share.ranges) matrix.mine[matrix.dimension] += range.size();
  return matrix;
}

std::uint64_t numbers_in(const std::vector<std::uint64_t>& shape) {
  std::uint64_t numbers = 1;
  for (const std::uint64_t d : shape) numbers *= d;
  return numbers;
}

// Whether its codes are bytes of their own, or halves of them, a row after the other (refimpl/models/weights.cpp).
bool has_plain_codes(const WeightFormat& form) {
  return form.word_bytes == 1 && !form.name.starts_with("bnb");
}

// Codes of a part, and the scales that go with them; float32 where codes cannot be cut there.
std::uint64_t bytes_in_form(const WeightFormat& form, const TensorSpec& spec, const RankMatrix& matrix) {
  const std::size_t last = matrix.whole.size() - 1;
  const bool cuts_inputs = (matrix.dimension == last) != spec.input_major;
  const std::size_t in_at = spec.input_major ? last - 1 : last, out_at = spec.input_major ? last : last - 1;
  const std::uint64_t in = matrix.whole[in_at], out = matrix.whole[out_at], numbers = numbers_in(matrix.mine);
  const auto whole_bytes = [&](const IndexRange& range) {
    return range.begin * form.bits % 8 == 0 && range.end * form.bits % 8 == 0;
  };
  const bool cuttable = !cuts_inputs || std::all_of(matrix.ranges.begin(), matrix.ranges.end(), whole_bytes);
  if (!has_plain_codes(form) || !cuttable || in * form.bits % 8 != 0) return numbers * sizeof(float);
  const auto scales_along = [&](bool cut, std::uint64_t block, std::uint64_t size) {
    const std::vector<IndexRange> all = {{0, size}};
    return count_scales(cut ? matrix.ranges : all, block == 0 ? size : block, size);
  };
  const std::uint64_t scales =
      scales_along(!cuts_inputs, form.block_rows, out) * scales_along(cuts_inputs, form.block_columns, in);
  // Of what a matrix has as a whole a rank keeps the scale over its scales (NVFP4).
  const std::uint64_t of_matrix = form.per_matrix_bytes == 0 ? 0 : sizeof(float);
  return numbers * form.bits / 8 + scales * form.scale_bytes + of_matrix;
}

// Of routed experts, or of all else.
RankWeights weights_of(const ModuleTree& tree, const WeightSizes& sizes, const RankPlace& place,
                       bool with_mtp, bool routed) {
  RankWeights held{place};
  const RankGrid& grid = place.grid;
  const IndexRange stage = place.layers(tree.layers);
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (spec.storage == Storage::buffer || where.tower) return;
    if ((spec.part == Part::routed_expert) != routed) return;
    // Embedding and head of the prediction layers are the main model's.
    if (where.mtp && (!with_mtp || grid.pp > 1 || grid.dp > 1 || spec.storage == Storage::duplicate)) return;
    std::vector<std::uint64_t> layers =
        layers_in_stage(spec, where, stage, place.first_stage(), place.last_stage());
    std::erase_if(layers, [&](std::uint64_t l) { return is_norm_of_other_head(spec, tree, l, place); });
    if (layers.empty()) return;
    const RankMatrix matrix = matrix_of_rank(spec, tree, place);
    std::uint64_t in_a_layer = where.copies / layers_of(where).size();
    if (spec.stacked != 0) in_a_layer *= spec.stacked;
    if (routed) in_a_layer /= grid.ep;
    held.parameters += numbers_in(matrix.mine) * in_a_layer * layers.size();
    for (const std::uint64_t layer : layers) {
      const WeightFormat* form = sizes.form_of(spec, layer);
      held.bytes += in_a_layer * (form == nullptr ? sizes.of_tensor(spec, matrix.mine, layer)
                                                  : bytes_in_form(*form, spec, matrix));
    }
  });
  return held;
}

}  // namespace

bool is_norm_of_other_head(const TensorSpec& spec, const ModuleTree& tree, std::uint64_t layer,
                           const RankPlace& place) {
  constexpr std::string_view kNorms = ".norms.";
  const std::size_t at = spec.name.find(kNorms);
  if (at == std::string::npos || (spec.role != Role::q_norm && spec.role != Role::k_norm)) return false;
  const std::string_view rest = std::string_view(spec.name).substr(at + kNorms.size());
  const auto head = parse_u64(rest.substr(0, rest.find('.')));
  for (const AttentionGeometry& g : tree.attention) {
    if (!head || std::find(g.layers.begin(), g.layers.end(), layer) == g.layers.end()) continue;
    const std::uint64_t heads = spec.role == Role::q_norm ? g.heads : g.kv_heads;
    TensorSpec of_heads = spec;
    of_heads.parallel = {Partition::columns, 0, {{spec.role, heads, heads}}};
    const RankShare own = rank_share(of_heads, tree, heads, 0, {place.grid.tp, 1}, place.in_tp());
    return !own.ranges.empty() && (*head < own.ranges[0].begin || *head >= own.ranges[0].end);
  }
  return false;
}

std::vector<RankWeights> rank_weights(const ModuleTree& tree, const RankGrid& grid,
                                      const WeightFormat& format, bool with_mtp) {
  const WeightSizes sizes(tree, format);
  std::vector<RankWeights> all;
  // What is cut over tp is alike on all copies, an expert's part in all groups: by the stage and the place in either.
  std::map<std::pair<std::size_t, std::size_t>, RankWeights> experts, others;
  const auto add = [&](bool routed, std::size_t place_in_cut, RankWeights& rank) {
    auto& known = routed ? experts : others;
    const std::pair key = {rank.place.stage(), place_in_cut};
    auto held = known.find(key);
    if (held == known.end())
      held = known.emplace(key, weights_of(tree, sizes, rank.place, with_mtp, routed)).first;
    rank.parameters += held->second.parameters;
    rank.bytes += held->second.bytes;
  };
  for (std::size_t rank = 0; rank < grid.ranks(); ++rank) {
    RankWeights held{{grid, rank}};
    add(false, held.place.in_tp(), held);
    if (tree.experts > 0) add(true, held.place.in_stage() % grid.ranks_of_an_expert(), held);
    all.push_back(held);
  }
  return all;
}

}  // namespace assay
