#include "convert/ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "convert/reshard.h"
#include "core/formats/shard_index.h"
#include "core/model/composed_tensor.h"
#include "core/model/expert_layout.h"
#include "core/model/open_model.h"
#include "core/model/parallel_words.h"
#include "core/model/stored_checks.h"
#include "core/model/stored_reader.h"
#include "core/numeric/ceil_div.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/report.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr std::uint64_t kSmallestBlock = 8;  // no kernel takes a smaller one

std::uint64_t product(std::span<const std::uint64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

std::uint64_t bytes_of(const OutputTensor& output, std::uint64_t elements) {
  const auto bytes = storage_bytes(output.type, elements);
  if (!bytes) throw Error::refused("a cut would end within a byte").tensor(output.name);
  return *bytes;
}

// Rows are the last dimension but one, columns the last: of a stacked or plain matrix.
bool is_row_dimension(std::size_t dimension, const LogicalTensor& tensor) {
  return dimension + 2 == tensor.shape.size();
}
bool is_column_dimension(std::size_t dimension, const LogicalTensor& tensor) {
  return tensor.shape.size() >= 2 && dimension + 1 == tensor.shape.size();
}

// Over how many indices of the weight one scale (zero point, …) of the output stands.
std::uint64_t scale_block(const ConversionPlan& plan, const OutputTensor& output, bool rows) {
  const Work& work = plan.works[output.work];
  const LogicalTensor& tensor = plan.stored.tensors[work.tensor];
  const auto pick = [&](std::uint64_t of_rows, std::uint64_t of_columns) {
    return rows ? of_rows : of_columns;
  };
  switch (work.action) {
    case WorkAction::copy: return pick(tensor.form.block_rows, tensor.form.block_columns);
    case WorkAction::reblock: return pick(plan.spec.block_rows, plan.spec.block_columns);
    case WorkAction::cast: return 1;
    case WorkAction::recode: return pick(tensor.form.block_rows, tensor.form.block_columns);
    case WorkAction::quantize: break;
  }
  const auto quantizer = plan.spec.encoder->quantizer(tensor.rows, tensor.columns);
  return quantizer ? pick(quantizer->block_rows, quantizer->block_columns) : 1;
}

bool holds_scales(const ConversionPlan& plan, const OutputTensor& output) {
  const bool made = output.source != OutputTensor::Source::stored;
  if (made) return output.source == OutputTensor::Source::scales;
  const LogicalTensor& tensor = plan.stored.tensors[plan.works[output.work].tensor];
  return output.from != tensor.codes;
}

bool is_auxiliary(const LogicalTensor& tensor, std::uint32_t place) {
  return std::find(tensor.auxiliary.begin(), tensor.auxiliary.end(), place) != tensor.auxiliary.end();
}

// For every input its group; empty where the index is filled with -1, compressed-tensors' "not in use".
std::vector<std::uint32_t> read_group_index(const CheckpointReader& source, const LogicalTensor& tensor) {
  const CheckpointTensor& stored = source.checkpoint().tensors[*tensor.group_index];
  std::vector<std::uint32_t> index(stored.bytes / sizeof(std::uint32_t));
  source.read(stored, 0, std::as_writable_bytes(std::span(index)));
  if (std::find(index.begin(), index.end(), 0xFFFFFFFFu) != index.end()) index.clear();
  return index;
}

bool is_in_order(const std::vector<std::uint32_t>& index, std::uint64_t group) {
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    if (index[i] != i / group) return false;
  }
  return true;
}

Finding against(std::string code, Severity severity, std::string tensor, std::string message,
                std::string remedy) {
  return {.severity = severity,
          .code = std::move(code),
          .message = std::move(message),
          .file = {},
          .tensor = std::move(tensor),
          .offset = {},
          .remedy = std::move(remedy)};
}

}  // namespace

struct RankPlan::Piece {
  bool held = true;
  std::vector<std::uint64_t> shape;
  std::uint64_t rows = 1, row_bytes = 0;  // of the whole tensor
  RankPart part;
  std::string cut;  // what the file says of it, as JSON; empty: all of it
};

std::string rank_folder(std::uint64_t rank, std::uint64_t ranks) {
  const std::size_t digits = std::max<std::size_t>(2, std::to_string(ranks - 1).size());
  return fmt::format("rank-{:0{}}", rank, digits);
}

RankPlan::RankPlan(const ConversionPlan& plan, const ParallelConfig& grid, Findings& findings) : grid_(grid) {
  if (plan.checkpoint.config.empty()) {
    throw Error::input("without a config.json there is no telling where weights may be cut")
        .in(plan.checkpoint.root);
  }
  ExpertLayout layout;
  for (const LogicalTensor& tensor : plan.stored.tensors) layout.see(tensor.name, tensor.shape);
  tree_ = std::make_shared<ModuleTree>(layout.applied_to(describe_model(plan.checkpoint).tree));
  for (const std::string& refusal : refusals_to_cut(*tree_, grid))
    findings.push_back(against("convert.cut", Severity::error, {}, refusal, "take another --tp or --ep"));
  if (has_errors(findings)) return;
  find_weights(plan, findings);
  find_act_order(plan, findings);
  check(plan, findings);
  if (!has_errors(findings)) name_files(plan);
}

void RankPlan::find_weights(const ConversionPlan& plan, Findings& findings) {
  const TensorLookup lookup(*tree_);
  std::uint64_t unknown = 0;
  std::string example;
  for (const Work& work : plan.works) {
    const LogicalTensor& tensor = plan.stored.tensors[work.tensor];
    Weight& weight = weights_.emplace_back();
    const auto found = lookup.find(tensor.name);
    if (!found) {
      if (unknown++ == 0) example = tensor.name;
      continue;
    }
    weight.spec = found->spec;
    weight.expert = found->indices.expert;
    weight.dimension = found->spec->parallel.dimension;
    // gpt-oss's packed experts are stored [experts, out, in], its plain ones the other way about.
    const bool transposed = plan.checkpoint.tensors[tensor.codes].name.ends_with("_blocks");
    if (transposed && weight.dimension > 0) weight.dimension = 3 - weight.dimension;
    if (weight.dimension >= tensor.shape.size() || tensor.shape.size() != found->spec->shape.size()) {
      findings.push_back(against("convert.cut", Severity::error, tensor.name,
                                 fmt::format("has {} dimensions where {} has {}", tensor.shape.size(),
                                             tree_->family, found->spec->shape.size()),
                                 {}));
      weight.spec = nullptr;
      continue;
    }
    weight.size = tensor.shape[weight.dimension];
  }
  if (unknown == 0) return;
  findings.push_back(
      against("convert.cut_unknown", Severity::warning, example,
              fmt::format("{} tensors are unknown to the module tree of {}: every rank gets them whole",
                          unknown, tree_->family),
              {}));
}

// Where inputs are cut and lie in any order of groups (GPTQ's desc_act, compressed-tensors' actorder
// "group"), each rank takes its slice of the index, which goes on naming groups of the whole, and all scales
// and zero points: vLLM `marlin_repeat_scales_on_all_ranks`. Without act-order engines do not read the index.
void RankPlan::find_act_order(const ConversionPlan& plan, Findings& findings) {
  const CheckpointReader reader(plan.checkpoint);
  const bool declared = plan.quantization && plan.quantization->activation_order.value_or(false);
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    Weight& weight = weights_[i];
    const LogicalTensor& tensor = plan.stored.tensors[plan.works[i].tensor];
    const bool cuts_inputs = weight.spec != nullptr && cut_ranks(*weight.spec, grid_) > 1 &&
                             is_column_dimension(weight.dimension, tensor);
    if (!tensor.group_index || plan.works[i].action != WorkAction::copy || !cuts_inputs) continue;
    const bool of_gptq = tensor.form.packed.codes_across;
    const auto index = read_group_index(reader, tensor);
    const bool in_order = index.empty() || is_in_order(index, tensor.form.block_columns);
    weight.any_group = of_gptq ? declared : !index.empty();
    if (weight.any_group || in_order) continue;
    findings.push_back(against("convert.cut", Severity::error, tensor.name,
                               "its g_idx puts inputs in any order, and config.json says desc_act false: "
                               "engines cut the scales as if they were in order",
                               "set desc_act to true in config.json"));
  }
}

// A matrix no longer than a block has one scale there, which every rank would get whole; engines refuse it
// still.
std::uint64_t RankPlan::undivided_block(const ConversionPlan& plan, const OutputTensor& output,
                                        const Weight& weight) const {
  const LogicalTensor& tensor = plan.stored.tensors[plan.works[output.work].tensor];
  if (!holds_scales(plan, output) || output.shape.size() < 2 || product(output.shape) <= 1) return 1;
  const std::uint64_t rows = scale_block(plan, output, true), columns = scale_block(plan, output, false);
  if (rows <= 1 || columns <= 1) return 1;
  return is_row_dimension(weight.dimension, tensor) ? rows : columns;
}

// That divides every share of what is cut and the present blocks: what --to reblock would have to make.
std::uint64_t RankPlan::largest_block(const ConversionPlan& plan) const {
  std::uint64_t block = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const LogicalTensor& tensor = plan.stored.tensors[plan.works[i].tensor];
    const TensorSpec* spec = weights_[i].spec;
    if (spec == nullptr || tensor.form.kind != FormKind::scaled || tensor.form.block_rows <= 1) continue;
    const std::uint64_t ranks = cut_ranks(*spec, grid_);
    block = std::gcd(block, std::gcd(tensor.form.block_rows, tensor.form.block_columns));
    for (const PartitionedPart& member : spec->parallel.members)
      if (ranks > 1) block = std::gcd(block, member_share(member, spec->parallel.partition, ranks));
  }
  return block;
}

// One finding for every kind of tensor that cannot be cut.
void RankPlan::check(const ConversionPlan& plan, Findings& findings) const {
  std::map<std::string, std::pair<Finding, std::uint64_t>> refused;
  const std::uint64_t block = largest_block(plan);
  const std::string block_remedy =
      block >= kSmallestBlock ? fmt::format("smaller blocks: --to reblock={0}x{0} --tp {1}", block, grid_.tp)
                              : "take a smaller --tp";
  const auto refuse = [&](const TensorSpec& spec, const std::string& tensor, std::string message,
                          std::string remedy) {
    auto& [finding, count] = refused[spec.name + message];
    if (count++ == 0)
      finding = against("convert.cut", Severity::error, tensor, std::move(message), std::move(remedy));
  };
  for (const OutputShard& shard : plan.shards) {
    for (const OutputTensor& output : shard.tensors) {
      const Weight& weight = weights_[output.work];
      if (weight.spec == nullptr || cut_ranks(*weight.spec, grid_) == 1) continue;
      const LogicalTensor& tensor = plan.stored.tensors[plan.works[output.work].tensor];
      std::uint64_t expected = 0;
      for (const PartitionedPart& member : weight.spec->parallel.members) expected += member.size;
      if (weight.spec->parallel.partition != Partition::vocabulary && expected != weight.size) {
        refuse(*weight.spec, tensor.name,
               fmt::format("its size is {} where config.json makes it {}", weight.size, expected), {});
        continue;
      }
      const auto axis = axis_of(plan, output);
      if (axis && axis->step == 0) {
        refuse(*weight.spec, tensor.name, fmt::format("how {} is cut is not known", form_name(tensor)), {});
        continue;
      }
      // Kernels want whole groups on a rank even where every rank has all scales (vLLM
      // `verify_marlin_supports_shape`).
      const std::uint64_t group = weight.any_group && axis ? tensor.form.block_columns : 1;
      const std::uint64_t step =
          std::max({axis ? axis->step : 1, undivided_block(plan, output, weight), group});
      const auto refusal = refusal_to_cut(*weight.spec, grid_, step,
                                          tensor.form.kind != FormKind::scaled && tensor.quantized());
      if (!refusal) continue;
      const bool by_blocks = tensor.form.kind == FormKind::scaled && step > 1;
      refuse(*weight.spec, tensor.name, fmt::format("{}: {}", refusal->arithmetic, refusal->message),
             by_blocks ? block_remedy : "take a smaller --tp");
    }
  }
  for (auto& [key, value] : refused) {
    auto& [finding, count] = value;
    if (count > 1) finding.message += fmt::format(" (and {} more)", count - 1);
    findings.push_back(std::move(finding));
  }
}

// The axis of a stored tensor that runs along the weight's cut dimension, and how coarsely; nullopt: it lies
// across (a scale a row, where columns are cut), and every rank has all of it.
std::optional<RankPlan::Axis> RankPlan::axis_of(const ConversionPlan& plan,
                                                const OutputTensor& output) const {
  const Weight& weight = weights_[output.work];
  const LogicalTensor& tensor = plan.stored.tensors[plan.works[output.work].tensor];
  const bool rows = is_row_dimension(weight.dimension, tensor),
             columns = is_column_dimension(weight.dimension, tensor);
  const std::size_t dimensions = output.shape.size();
  constexpr Axis kUnknown{0, 0};
  const bool stored = output.source == OutputTensor::Source::stored,
             transposed = stored && tensor.form.transposed;
  if (output.shape == tensor.shape && !transposed) return Axis{weight.dimension, 1};
  if (product(output.shape) <= 1 || (stored && is_auxiliary(tensor, output.from))) return std::nullopt;
  if (stored && tensor.form.kind == FormKind::codebook) return kUnknown;  // its blocks run on over rows
  const FormDetails& details = details_of(tensor);
  if (stored && (details.decode != nullptr || details.groups_first || details.swizzled)) return kUnknown;
  if (stored && !details.parts.empty()) return std::nullopt;  // every rank has a share of each part
  if (dimensions == 1) {
    // For each input its group, or its factor; of anything else it is a scale a row.
    if (stored && (tensor.group_index == output.from || tensor.input_factors == output.from))
      return columns ? std::optional(Axis{0, 1}) : std::nullopt;
    if (rows && output.shape[0] == tensor.rows) return Axis{0, 1};
    return std::nullopt;
  }
  if (weight.any_group && stored && output.from != tensor.codes) return std::nullopt;
  if (dimensions < tensor.shape.size() || (!rows && !columns)) return kUnknown;
  const std::size_t last = tensor.shape.size() - 1;  // blocks of codes may have a dimension after it
  const std::size_t axis = rows != transposed ? last - 1 : last;
  const std::uint64_t count = output.shape[axis];
  if (count <= 1) return std::nullopt;
  const auto fits = [&](std::uint64_t step) { return step > 0 && ceil_div(weight.size, step) == count; };
  if (holds_scales(plan, output)) {
    const std::uint64_t block = scale_block(plan, output, rows);
    if (fits(block)) return Axis{axis, block};
  }
  return weight.size % count == 0 ? Axis{axis, weight.size / count} : kUnknown;
}

RankPlan::Piece RankPlan::piece_of(const ConversionPlan& plan, const OutputTensor& output,
                                   std::uint64_t rank) const {
  Piece piece;
  piece.shape = output.shape;
  piece.row_bytes = output.bytes;
  piece.part.rows = {0, 1};
  piece.part.ranges.push_back({{0, output.bytes}});
  piece.part.row_bytes = output.bytes;
  const Weight& weight = weights_[output.work];
  if (weight.spec == nullptr) return piece;
  const RankShare share = rank_share(*weight.spec, *tree_, weight.size, weight.expert, grid_, rank);
  piece.held = share.holds;
  const std::optional<Axis> axis = axis_of(plan, output);
  const bool cuts = axis && !share.ranges.empty();
  const bool experts = share.experts && output.shape.size() > 1 && output.shape[0] == weight.spec->stacked;
  if (!piece.held || (!cuts && !experts)) return piece;

  const std::size_t along = cuts ? axis->axis : 0;
  std::vector<IndexRange> ranges;  // along the axis
  std::uint64_t padding = 0;
  if (cuts) {
    padding = share.padding / axis->step;
    for (const IndexRange& range : share.ranges) {
      ranges.push_back(
          {range.begin / axis->step, std::min(ceil_div(range.end, axis->step), output.shape[along])});
    }
  } else {
    ranges.push_back(*share.experts);
  }
  const std::uint64_t inner = bytes_of(output, product(std::span(output.shape).subspan(along + 1)));
  piece.rows = product(std::span(output.shape).first(along));
  piece.row_bytes = output.shape[along] * inner;
  piece.part.rows = {0, piece.rows};
  piece.part.ranges.clear();
  piece.shape[along] = padding;
  for (const IndexRange& range : ranges) {
    piece.part.ranges.push_back({{range.begin * inner, range.end * inner}});
    piece.shape[along] += range.size();
  }
  piece.part.row_bytes = piece.shape[along] * inner;
  piece.cut = fmt::format(R"("of":[{}],"axis":{},"ranges":[)", fmt::join(output.shape, ","), along);
  for (const IndexRange& range : ranges)
    piece.cut += fmt::format("{}[{},{}]", &range == ranges.data() ? "" : ",", range.begin, range.end);
  piece.cut += ']';
  if (cuts && experts) {
    const std::uint64_t each = piece.rows / output.shape[0];
    piece.part.rows = {share.experts->begin * each, share.experts->end * each};
    piece.shape[0] = share.experts->size();
    piece.cut += fmt::format(R"(,"experts":[{},{}])", share.experts->begin, share.experts->end);
  }
  return piece;
}

void RankPlan::name_files(const ConversionPlan& plan) {
  const std::uint64_t each = grid_.ranks_of_an_expert();
  std::vector<std::vector<bool>> held;  // by shard, then expert group
  for (const OutputShard& shard : plan.shards) {
    std::vector<bool>& groups = held.emplace_back(grid_.ep, false);
    for (const OutputTensor& output : shard.tensors) {
      const Weight& weight = weights_[output.work];
      for (std::uint64_t group = 0; group < grid_.ep; ++group) {
        groups[group] =
            groups[group] || weight.spec == nullptr ||
            rank_share(*weight.spec, *tree_, weight.size, weight.expert, grid_, group * each).holds;
      }
    }
  }
  for (std::uint64_t rank = 0; rank < grid_.tp; ++rank) {
    const std::uint64_t group = rank / each;
    const auto count = static_cast<std::size_t>(
        std::count_if(held.begin(), held.end(), [&](const auto& groups) { return groups[group]; }));
    std::size_t number = 0;
    for (std::size_t i = 0; i < plan.shards.size(); ++i) {
      const std::string& whole = plan.shards[i].name;
      const auto named = parse_shard_name(whole);
      const std::string mine = count == plan.shards.size()
                                   ? whole
                                   : numbered_shard(named ? named->stem : "model", number + 1, count);
      names_[whole].push_back(held[i][group] ? mine : "");
      number += held[i][group] ? 1 : 0;
    }
  }
}

const std::string& RankPlan::file_name(const OutputShard& shard, std::uint64_t rank) const {
  return names_.at(shard.name)[rank];
}

CutShard RankPlan::cut(const ConversionPlan& plan, const OutputShard& shard) const {
  CutShard made;
  made.tensors.resize(shard.tensors.size());
  std::vector<std::string> names;  // as JSON
  for (const OutputTensor& output : shard.tensors) names.push_back(dump_json(Json(output.name), -1));
  for (std::uint64_t rank = 0; rank < grid_.tp; ++rank) {
    if (file_name(shard, rank).empty()) continue;
    RankFile file;
    file.rank = rank;
    file.name = rank_folder(rank, grid_.tp) + '/' + file_name(shard, rank);
    std::vector<safetensors::Tensor> described;
    std::vector<std::size_t> places;
    std::string cuts = "{";
    for (std::size_t i = 0; i < shard.tensors.size(); ++i) {
      const OutputTensor& output = shard.tensors[i];
      Piece piece = piece_of(plan, output, rank);
      if (!piece.held) continue;
      if (!piece.cut.empty())
        cuts += fmt::format("{}{}:{{{}}}", cuts.size() > 1 ? "," : "", names[i], piece.cut);
      made.tensors[i].rows = piece.rows;
      made.tensors[i].row_bytes = piece.row_bytes;
      piece.part.file = static_cast<std::uint32_t>(made.files.size());
      made.tensors[i].parts.push_back(std::move(piece.part));
      described.push_back({output.name, output.type, std::move(piece.shape)});
      places.push_back(i);
    }
    auto metadata = shard.metadata;
    metadata.emplace_back(kRankMetadata, fmt::format("{}/{}", rank, grid_.tp));
    metadata.emplace_back(kShardMetadata, shard.name);
    metadata.emplace_back(kCutMetadata, cuts + "}");
    // The tensors of a shard are in the reference's order already, and so are those that a rank has of them.
    file.header = safetensors::serialize_header(described, metadata);
    for (std::size_t k = 0; k < places.size(); ++k) {
      made.tensors[places[k]].parts.back().offset = file.header.size() + described[k].begin;
      file.tensors.push_back(described[k].name);
    }
    file.tensor_bytes = described.empty() ? 0 : described.back().end;
    file.bytes = file.header.size() + file.tensor_bytes;
    made.files.push_back(std::move(file));
  }
  return made;
}

void RankPlan::measure(const ConversionPlan& plan, int jobs) {
  std::vector<std::vector<std::array<std::uint64_t, 3>>> sizes(plan.shards.size());
  parallel_for(jobs, plan.shards.size(), [&](std::size_t i) {
    for (const RankFile& file : cut(plan, plan.shards[i]).files)
      sizes[i].push_back({file.rank, file.bytes, file.tensor_bytes});
  });
  file_bytes_.assign(grid_.tp, 0);
  tensor_bytes_.assign(grid_.tp, 0);
  for (const auto& shard : sizes) {
    for (const auto& [rank, bytes, tensors] : shard) {
      file_bytes_[rank] += bytes;
      tensor_bytes_[rank] += tensors;
    }
  }
}

std::string RankPlan::rule(std::uint32_t work) const {
  const Weight& weight = weights_[work];
  if (weight.spec == nullptr) return "whole on each rank";
  const TensorSpec& spec = *weight.spec;
  const std::uint64_t ranks = cut_ranks(spec, grid_);
  const bool dealt = spec.part == Part::routed_expert && grid_.ep > 1;
  const std::string share = ranks == 1 ? (dealt ? "whole" : "whole on each rank")
                            : spec.parallel.partition == Partition::rows ? fmt::format("inputs / {}", ranks)
                            : spec.parallel.partition == Partition::vocabulary
                                ? fmt::format("vocabulary / {}", ranks)
                                : fmt::format("outputs / {}", ranks);
  return dealt ? fmt::format("experts / {}, {}", grid_.ep, share) : share;
}

}  // namespace assay
