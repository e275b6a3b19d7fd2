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

// What stages hand on, as one letter: [matrices | columns of each | numbers of each]. Rows stand for tokens.
std::vector<double> letter_of(const std::vector<Matrix>& matrices, Ops& ops) {
  std::vector<double> letter = {static_cast<double>(matrices.size())};
  for (const Matrix& m : matrices) letter.push_back(static_cast<double>(m.columns()));
  for (const Matrix& m : matrices) {
    const std::vector<double> values = ops.download(m);
    letter.insert(letter.end(), values.begin(), values.end());
  }
  return letter;
}
std::vector<Matrix> read_letter(const std::vector<double>& letter, std::size_t rows, Ops& ops) {
  const auto count = static_cast<std::size_t>(letter.at(0));
  std::vector<Matrix> matrices;
  auto rest = std::span(letter).subspan(1 + count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto columns = static_cast<std::size_t>(letter.at(1 + i));
    matrices.push_back(as_it_is(ops, rest.first(rows * columns), rows, columns));
    rest = rest.subspan(rows * columns);
  }
  return matrices;
}

// What a layer's cache got in the step under way, of all sequences: keys, and values where there are any.
void append_new_rows(const Batch& batch, std::size_t layer, const CacheWidth& width, Ops& ops,
                     std::vector<Matrix>& to) {
  for (const bool keys : {true, false}) {
    if (!keys && width.value_width == 0) continue;
    Matrix all = ops.allocate(batch.tokens.size(), keys ? width.key_width : width.value_width);
    for (const Batch::Sequence& s : batch.sequences) {
      const PagedKvView rows = keys ? s.cache->keys(layer) : s.cache->values(layer);
      std::vector<std::size_t> places;
      for (std::size_t i = 0; i < s.count; ++i) places.push_back(rows.row(s.cache->rows(layer) + i));
      ops.store({.base = all}, s.first, ops.gather(rows.base, places));
    }
    to.push_back(all);
  }
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
}

std::vector<CacheWidth> RankModel::cache_widths() const {
  std::vector<CacheWidth> widths = inner_->cache_widths();
  if (groups_.place.grid.pp == 1) return widths;
  const StageCaches caches = caches_of_stage(*staged_, widths.size(), cut_.layers());
  for (std::size_t i = 0; i < widths.size(); ++i)
    if (!caches.keeps[i]) widths[i] = {};
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
  StageStream stream =
      place.first_stage() ? staged_->enter(batch, ops, taps) : take_over(batch, mine.begin, ops);
  stream = staged_->through(std::move(stream), mine.begin, mine.end, batch, ops, taps);
  if (place.last_stage()) return staged_->leave(stream, ops, taps);
  hand_on(stream, batch, mine.end, ops);
  return stream.x;  // of the right number of rows: only the last stage's is looked at
}

// To the next stage: the stream, what lies beside it, and what layers behind read of caches before the border.
void RankModel::hand_on(const StageStream& stream, const Batch& batch, std::size_t border, Ops& ops) const {
  std::vector<Matrix> all = {stream.x};
  const std::vector<CacheWidth> widths = inner_->cache_widths();
  for (const std::size_t layer : caches_across(*staged_, border))
    append_new_rows(batch, layer, widths.at(layer), ops, all);
  all.insert(all.end(), stream.beside.begin(), stream.beside.end());
  groups_.pipeline.send(groups_.place.stage() + 1, letter_of(all, ops));
}

StageStream RankModel::take_over(const Batch& batch, std::size_t border, Ops& ops) const {
  const std::vector<Matrix> all =
      read_letter(groups_.pipeline.receive(groups_.place.stage() - 1), batch.tokens.size(), ops);
  const std::vector<CacheWidth> widths = inner_->cache_widths();
  std::size_t next = 1;
  for (const std::size_t layer : caches_across(*staged_, border)) {
    const Matrix& keys = all.at(next++);
    const Matrix values = widths.at(layer).value_width == 0 ? Matrix() : all.at(next++);
    for (const Batch::Sequence& s : batch.sequences) {
      const Matrix of_keys = keys.row_range(s.first, s.count);
      if (values.empty())
        s.cache->put(layer, of_keys);
      else
        s.cache->put(layer, of_keys, values.row_range(s.first, s.count));
    }
  }
  return {all.at(0), {all.begin() + static_cast<std::ptrdiff_t>(next), all.end()}};
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
