#include "refimpl/ranks/rank_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "refimpl/ranks/rank_ops.h"

namespace assay {
namespace {

// Sequences [first, last) of a batch as one of their own.
Batch part_of(const Batch& batch, std::size_t first, std::size_t last) {
  Batch part;
  part.may_stop = batch.may_stop;
  for (std::size_t s = first; s < last; ++s) {
    Batch::Sequence sequence = batch.sequences[s];
    const auto from = static_cast<std::ptrdiff_t>(sequence.first);
    const auto to = from + static_cast<std::ptrdiff_t>(sequence.count);
    sequence.first = part.tokens.size();
    part.tokens.insert(part.tokens.end(), batch.tokens.begin() + from, batch.tokens.begin() + to);
    part.positions.insert(part.positions.end(), batch.positions.begin() + from, batch.positions.begin() + to);
    part.sequences.push_back(sequence);
  }
  return part;
}

// The widths of a stream that stages hand on: rows stand for tokens.
std::vector<double> with_columns(const Matrix& x, Ops& ops) {
  std::vector<double> values = ops.download(x);
  values.push_back(static_cast<double>(x.columns()));
  return values;
}
Matrix from_letter(std::vector<double> values, std::size_t rows, Ops& ops) {
  const auto columns = static_cast<std::size_t>(values.back());
  values.pop_back();
  return as_it_is(ops, values, rows, columns);
}

}  // namespace

RankModel::RankModel(std::unique_ptr<LanguageModel> inner, const RankCut& cut, RankGroups& groups,
                     std::size_t micro_batches, RankFault fault)
    : inner_(std::move(inner)),
      staged_(dynamic_cast<const StagedModel*>(inner_.get())),
      cut_(cut),
      groups_(groups),
      micro_batches_(std::max<std::size_t>(1, micro_batches)),
      vocabulary_(cut.whole_tree().vocabulary),
      fault_(fault) {
  const RankGrid& grid = groups.place.grid;
  if (grid.tp == 1) vocabulary_ = inner_->vocabulary();
  if (grid.pp == 1) return;
  if (staged_ == nullptr) throw Error::input("this architecture is not computed in stages: take --pp 1");
  if (const std::string obstacle = staged_->obstacle(); !obstacle.empty())
    throw Error::input(fmt::format("{}: take --pp 1", obstacle));
}

std::vector<CacheWidth> RankModel::cache_widths() const {
  std::vector<CacheWidth> widths = inner_->cache_widths();
  if (groups_.place.grid.pp == 1) return widths;
  const IndexRange mine = cut_.layers();
  const std::size_t of_a_layer = widths.size() / std::max<std::size_t>(1, staged_->layer_count());
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::size_t layer = of_a_layer > 1 ? i / of_a_layer : i;  // LongCat attends twice a layer
    if (layer < mine.begin || layer >= mine.end) widths[i] = {};
  }
  return widths;
}

// Guesses of a pipeline would have to be asked for stage by stage, and copies make different numbers of them.
std::size_t RankModel::draft_layers() const {
  const RankGrid& grid = groups_.place.grid;
  return grid.pp == 1 && grid.dp == 1 ? inner_->draft_layers() : 0;
}

bool RankModel::anyone_works(bool self) const {
  if (groups_.place.grid.dp == 1) return self;
  const double mine[] = {self ? 1.0 : 0.0};
  const auto all = groups_.stage.all_gather(mine);
  return std::any_of(all.begin(), all.end(), [](const auto& of_rank) { return of_rank.front() != 0; });
}

Matrix RankModel::pass(const Batch& batch, Ops& ops, const Taps& taps) const {
  const RankPlace& place = groups_.place;
  if (place.grid.pp == 1) return inner_->hidden(batch, ops, taps);
  const IndexRange mine = cut_.layers();
  Matrix x = place.first_stage()
                 ? staged_->enter(batch, ops, taps)
                 : from_letter(groups_.pipeline.receive(place.stage() - 1), batch.tokens.size(), ops);
  x = staged_->through(x, mine.begin, mine.end, batch, ops, taps);
  if (place.last_stage()) return staged_->leave(x, ops, taps);
  groups_.pipeline.send(place.stage() + 1, with_columns(x, ops));
  return x;  // of the right number of rows: only the last stage's is looked at
}

Matrix RankModel::hidden(const Batch& batch, Ops& ops, const Taps& taps) const {
  const std::size_t sequences = batch.sequences.size();
  const std::size_t parts = groups_.place.grid.pp == 1 ? 1 : std::min(micro_batches_, sequences);
  if (parts <= 1) {
    anyone_works(true);
    return pass(batch, ops, taps);
  }
  std::vector<double> all;  // [tokens, hidden]
  for (std::size_t i = 0; i < parts; ++i) {
    anyone_works(true);
    const Batch part = part_of(batch, i * sequences / parts, (i + 1) * sequences / parts);
    const std::vector<double> some = ops.download(pass(part, ops, taps));
    all.insert(all.end(), some.begin(), some.end());
  }
  return as_it_is(ops, all, batch.tokens.size(), all.size() / batch.tokens.size());
}

Matrix RankModel::logits(const Matrix& hidden, Ops& ops, const Taps& taps) const {
  const RankPlace& place = groups_.place;
  if (place.grid.pp == 1) return inner_->logits(hidden, ops, taps);
  std::vector<double> values;
  if (place.last_stage()) values = ops.download(inner_->logits(hidden, ops, taps));
  groups_.pipeline.broadcast(place.grid.pp - 1, values);
  return as_it_is(ops, values, hidden.rows(), vocabulary_);
}

void RankModel::keep_company(Ops& ops) const {
  if (groups_.place.grid.dp == 1 || fault_ == RankFault::idle_rank_is_absent) return;
  while (anyone_works(false)) {
    SequenceCache scratch(ops, cache_widths(), 1);
    Batch batch;
    const TokenId nothing = 0;
    batch.add({&nothing, 1}, scratch);
    pass(batch, ops, {});
    ++idle_passes_;
  }
}

}  // namespace assay
