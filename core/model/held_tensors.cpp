#include "core/model/held_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/model/expert_layout.h"
#include "core/model/held_names.h"
#include "core/numeric/ceil_div.h"
#include "core/system/error.h"

namespace assay {
namespace {

std::uint64_t product(const std::vector<std::uint64_t>& shape, std::size_t from, std::size_t to) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(from),
                         shape.begin() + static_cast<std::ptrdiff_t>(to), std::uint64_t{1},
                         std::multiplies<>());
}

// A stored tensor, the weight it belongs to and what the tree says of that.
struct Stored {
  std::uint32_t place;
  const LogicalTensor* weight;
  const TensorSpec* spec;  // nullptr: the tree does not know it
  std::uint64_t expert = 0;
};

// How many indices of the weight's dimension one of the stored tensor stands for: 1 of codes, 128 of FP8's scales of
// blocks; nullopt: it has no such dimension.
std::optional<std::uint64_t> step_along(const Stored& stored, const CheckpointTensor& tensor,
                                        std::size_t dimension) {
  const LogicalTensor& weight = *stored.weight;
  if (tensor.shape.size() != weight.shape.size()) return std::nullopt;
  const std::uint64_t size = weight.shape[dimension], mine = tensor.shape[dimension];
  if (mine == size) return 1;
  const std::uint64_t block =
      dimension + 1 == weight.shape.size() ? weight.form.block_columns : weight.form.block_rows;
  if (block > 0 && ceil_div(size, block) == mine) return block;
  if (mine > 0 && size % mine == 0) return size / mine;  // two codes of FP4 a byte
  return std::nullopt;
}

class Holder {
 public:
  Holder(const OpenedModel& model, const ModuleTree& tree, const HeldAs& as)
      : model_(model), tree_(tree), as_(as), lookup_(tree) {}

  HeldTensors take() {
    for (const LogicalTensor& weight : model_.stored.tensors) see(weight);
    for (const auto& [name, members] : members_) hold(name, members);
    return std::move(held_);
  }

 private:
  struct Member {
    HeldName name;
    Stored stored;
    bool is_stack() const { return stored.spec != nullptr && stored.spec->stacked != 0; }
  };
  struct Assembly {
    HeldTensor tensor;
    std::uint64_t first_expert = 0, last_expert = 0;
  };

  void see(const LogicalTensor& weight) {
    const auto found = lookup_.find(weight.name);
    const bool by_engine = as_.names != HeldNames::stored;
    if (by_engine && !found) return not_told(weight.name, "is unknown to the module tree of " + tree_.family);
    if (by_engine && (found->mtp || found->tower))
      return not_told(weight.name, found->mtp
                                       ? "belongs to multi-token prediction, another model to the engine"
                                       : "belongs to no language model");
    if (by_engine && found->spec->storage != Storage::own)
      return not_told(weight.name, "is no parameter of its own");
    if (by_engine) {
      const std::string why = why_repacked(weight, *found->spec);
      if (!why.empty()) return not_told(weight.name, why);
    }
    for (const std::uint32_t place : weight.places()) {
      const Stored stored{place, &weight, found ? found->spec : nullptr, found ? found->indices.expert : 0};
      const std::string& name = model_.checkpoint.tensors[place].name;
      HeldName held =
          found ? held_name(name, *found->spec, found->indices.expert, tree_, as_.names) : HeldName{name};
      members_[held.name].push_back({std::move(held), stored});
    }
  }
  std::string why_repacked(const LogicalTensor& weight, const TensorSpec& spec) const {
    if (weight.composed) return "is put together from several stored ones";
    if (spec.input_major) return "is stored inputs first, which engines turn";
    if (weight.form.kind == FormKind::plain) return "";
    const bool of_blocks = weight.form.kind == FormKind::scaled && weight.form.block_rows > 1 &&
                           weight.form.block_columns > 1 && weight.scale && !weight.global_scale &&
                           model_.checkpoint.tensors[*weight.scale].shape.size() >= 2;
    return of_blocks ? "" : "is stored as " + form_name(weight) + ", which engines repack after loading";
  }
  void not_told(const std::string& name, std::string why) {
    held_.not_told.push_back({name, std::move(why)});
  }

  ElementType type_of(const Member& member) const {
    const ElementType stored = model_.checkpoint.tensors[member.stored.place].type;
    const bool plain = member.stored.weight->form.kind == FormKind::plain;
    // The correction of a router's scores stays in float32 whatever the engine's --dtype.
    const bool kept = member.stored.spec != nullptr && member.stored.spec->role == Role::router_correction;
    const bool is_float =
        stored == ElementType::F32 || stored == ElementType::BF16 || stored == ElementType::F16;
    return as_.type && plain && is_float && !kept ? *as_.type : stored;
  }

  void hold(const std::string& name, std::vector<Member> members) {
    std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
      return std::tuple(a.name.expert, a.name.part, a.stored.place) <
             std::tuple(b.name.expert, b.name.part, b.stored.place);
    });
    HeldShares shares;
    for (std::uint64_t rank = 0; rank < as_.grid.tp; ++rank) {
      Assembly made;
      made.tensor = {
          .name = name, .type = type_of(members.front()), .shape = {}, .ranks = {rank}, .pieces = {}};
      for (const Member& member : members) {
        if (type_of(member) != made.tensor.type)
          return not_told(name, "is fused of tensors of several types");
        if (member.is_stack() && members.size() > 1) return not_told(name, "is fused of several stacks");
        const std::string why = add(member, rank, made);
        if (!why.empty()) return not_told(name, why);
      }
      if (!made.tensor.pieces.empty()) add_share(std::move(made.tensor), shares);
    }
    if (!shares.empty()) held_.tensors.push_back(std::move(shares));
  }

  static bool reads_the_same(const HeldTensor& a, const HeldTensor& b) {
    return std::equal(a.pieces.begin(), a.pieces.end(), b.pieces.begin(), b.pieces.end(),
                      [](const HeldPiece& x, const HeldPiece& y) {
                        const RankPart &p = x.cut.parts[0], &q = y.cut.parts[0];
                        return x.place == y.place && x.zeros == y.zeros && p.rows == q.rows &&
                               std::equal(p.ranges.begin(), p.ranges.end(), q.ranges.begin(), q.ranges.end());
                      });
  }
  static void add_share(HeldTensor tensor, HeldShares& shares) {
    const auto same = std::find_if(shares.begin(), shares.end(),
                                   [&](const HeldTensor& share) { return reads_the_same(share, tensor); });
    if (same != shares.end())
      same->ranks.push_back(tensor.ranks.front());
    else
      shares.push_back(std::move(tensor));
  }

  // What `rank` holds of the member, at the end of what is made. Returns why that cannot be told; "": it can.
  std::string add(const Member& member, std::uint64_t rank, Assembly& made) const {
    const Stored& stored = member.stored;
    const CheckpointTensor& from = model_.checkpoint.tensors[stored.place];
    const bool cuts = stored.spec != nullptr && stored.spec->shape.size() == stored.weight->shape.size();
    const std::size_t dimension = cuts ? stored.spec->parallel.dimension : 0;
    RankShare share;
    if (cuts && dimension < stored.weight->shape.size())
      share = rank_share(*stored.spec, tree_, stored.weight->shape[dimension], stored.expert, as_.grid, rank);
    if (!share.holds) return "";
    pad_vocabulary(stored, share);

    HeldPiece piece{.place = stored.place, .cut = {}, .zeros = 0};
    std::vector<std::uint64_t> shape = from.shape;
    if (share.ranges.empty() && !share.experts && share.padding == 0) {
      piece.cut = {1, from.bytes, {{0, 0, {0, 1}, {{{0, from.bytes}}}, from.bytes}}};
    } else {
      const std::string why = cut(stored, from, dimension, share, shape, piece);
      if (!why.empty()) return why;
    }
    join(member.name, member.name.stacked && !member.is_stack(), std::move(shape), made);
    made.tensor.pieces.push_back(std::move(piece));
    return "";
  }

  // Engines pad the vocabulary on one rank, too.
  void pad_vocabulary(const Stored& stored, RankShare& share) const {
    if (as_.names == HeldNames::stored || stored.spec == nullptr || as_.grid.tp > 1) return;
    if (stored.spec->parallel.partition != Partition::vocabulary || stored.weight->shape.empty()) return;
    const std::uint64_t size = stored.weight->shape[0];
    share.ranges = {{0, size}};
    share.padding = ceil_div(size, kVocabularyPadding) * kVocabularyPadding - size;
  }

  // The share's ranges as bytes of the stored tensor.
  static std::string cut(const Stored& stored, const CheckpointTensor& from, std::size_t dimension,
                         const RankShare& share, std::vector<std::uint64_t>& shape, HeldPiece& piece) {
    const auto step = step_along(stored, from, dimension);
    const std::uint64_t elements = product(from.shape, 0, from.shape.size());
    if (elements == 0) return "holds nothing that could be cut";
    if (!step) {
      if (elements == 1) {
        piece.cut = {1, from.bytes, {{0, 0, {0, 1}, {{{0, from.bytes}}}, from.bytes}}};
        return "";
      }
      return fmt::format("has another shape than its weight, which is cut along dimension {}", dimension);
    }
    const std::uint64_t inner = product(from.shape, dimension + 1, from.shape.size()) * from.bytes / elements;
    const std::uint64_t experts_rows = dimension > 0 ? product(from.shape, 1, dimension) : 1;
    TensorCut& cut = piece.cut;
    cut.rows = product(from.shape, 0, dimension);
    cut.row_bytes = from.shape[dimension] * inner;
    RankPart part;
    part.rows = {0, cut.rows};
    if (share.experts && dimension > 0) {
      part.rows = {share.experts->begin * experts_rows, share.experts->end * experts_rows};
      shape[0] = share.experts->size();
    }
    std::vector<IndexRange> ranges = share.ranges;
    if (ranges.empty()) ranges = {{0, from.shape[dimension] * *step}};
    if (share.experts && dimension == 0)
      ranges = {{share.experts->begin * *step, share.experts->end * *step}};
    std::uint64_t held = 0;
    for (const IndexRange& range : ranges) {
      if (range.begin % *step != 0 ||
          (range.end % *step != 0 && range.end != stored.weight->shape[dimension]))
        return fmt::format("would be cut within a block of {}", *step);
      const IndexRange mine{range.begin / *step, ceil_div(range.end, *step)};
      part.ranges.push_back({{mine.begin * inner, mine.end * inner}});
      held += mine.size();
    }
    part.row_bytes = held * inner;
    const std::uint64_t padding = ceil_div(share.padding, *step);
    piece.zeros = padding * inner;
    shape[dimension] = held + padding;
    cut.parts.push_back(std::move(part));
    return "";
  }

  // Parts one under the other; the experts of a stack along a dimension of their own.
  static void join(const HeldName& name, bool apart, std::vector<std::uint64_t> shape, Assembly& made) {
    std::vector<std::uint64_t>& all = made.tensor.shape;
    if (made.tensor.pieces.empty()) {
      all = std::move(shape);
      made.first_expert = made.last_expert = name.expert;
      if (apart) all.insert(all.begin(), 1);
    } else if (!apart) {
      if (!all.empty() && !shape.empty()) all[0] += shape[0];
    } else {
      if (name.expert == made.first_expert && !shape.empty()) all[1] += shape[0];
      if (name.expert != std::exchange(made.last_expert, name.expert)) ++all[0];
    }
  }

  const OpenedModel& model_;
  const ModuleTree& tree_;
  const HeldAs& as_;
  const TensorLookup lookup_;
  std::map<std::string, std::vector<Member>> members_;
  HeldTensors held_;
};

}  // namespace

HeldTensors held_tensors(const OpenedModel& model, const HeldAs& as) {
  ExpertLayout layout;
  for (const LogicalTensor& tensor : model.stored.tensors) layout.see(tensor.name, tensor.shape);
  const bool plainly = as.names == HeldNames::stored && as.grid.tp == 1;
  std::string why_not;
  auto described = try_describe(model.checkpoint, &why_not);
  if (!described && !plainly)
    throw Error::input(why_not)
        .in(model.checkpoint.root)
        .remedy("without --engine and --tp no description is needed");
  const ModuleTree tree = described ? layout.applied_to(std::move(described->tree)) : ModuleTree();
  if (as.names != HeldNames::stored && !are_names_known(tree.family))
    throw Error::input(fmt::format("under which names engines hold a {} is not known here", tree.title))
        .in(model.checkpoint.root)
        .remedy("leave out --engine: tensors are then named as they are stored");
  for (const std::string& refusal : refusals_to_cut(tree, as.grid))
    throw Error::input(refusal).in(model.checkpoint.root).remedy("take another --tp or --ep");
  HeldTensors held = Holder(model, tree, as).take();
  return held;
}

}  // namespace assay
