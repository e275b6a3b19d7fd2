#include "refimpl/handoff/takeover.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <thread>

#include "core/system/error.h"
#include "refimpl/models/mapped_file.h"

namespace assay {
namespace {

std::string_view text_of(const HandoffPart& part) {
  return {reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size()};
}

constexpr std::uint64_t kMostWide = 1 << 20;  // numbers of a hidden state

}  // namespace

// What went wrong is said on both sides.
template <class Work>
void Takeover::told(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    refuse(error.line());
    throw;
  }
}

// All streams at once: nobody's sender waits for another one's, and patience with one is patience with all.
template <class Work>
void Takeover::side_by_side(const Work& work) {
  if (streams_.size() == 1) return work(0);
  std::vector<std::exception_ptr> failures(streams_.size());
  std::vector<std::thread> readers;
  for (std::size_t i = 0; i < streams_.size(); ++i)
    readers.emplace_back([&, i] {
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  for (std::thread& reader : readers) reader.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

void Takeover::refuse(const std::string& why) {
  side_by_side([&](std::size_t i) { streams_[i].source->refuse(why); });
}

Takeover::Takeover(const HandoffModel& with, PartSource& source, const HandoffMade& made)
    : Takeover(with, std::vector<PartSource*>{&source}, made) {}

Takeover::Takeover(const HandoffModel& with, std::vector<PartSource*> sources, const HandoffMade& made)
    : with_(with), made_(made) {
  for (PartSource* source : sources) streams_.push_back({.source = source});
  told([&] {
    std::vector<HandoffTicket> tickets(streams_.size());
    side_by_side([&](std::size_t i) { tickets[i] = begin(streams_[i]); });
    ticket_ = std::move(tickets.front());
    for (std::size_t i = 1; i < tickets.size(); ++i)
      if (to_text(tickets[i]) != to_text(ticket_))
        throw Error::input("ranks of a prefill hand over texts that differ");
    if (ticket_.draft != DraftHandoff::none && with_.model.draft_layers() == 0)
      throw Error::input("a hand-off is for layers for multi-token prediction that the model does not have")
          .remedy("of a model over ranks they are there under --tp and --ep, not under --pp and --dp");
    tokens_ = ticket_.tokens.size();
    for (const CacheShape::Layer& layer : with_.shape.layers) {
      const std::size_t first = CacheShape::first_needed(layer.width, tokens_);
      layers_.push_back({RowAssembly(tokens_, layer.width.key_width, layer.own(), first),
                         RowAssembly(tokens_, layer.width.value_width, layer.own(), first),
                         {}});
      for (const StateCut& cut : layer.states)
        layers_.back().states.emplace_back(cut, bytes_of(stored_width(with_.ops.arithmetic())));
    }
  });
}

HandoffTicket Takeover::begin(Stream& stream) const {
  stream.common.identity = with_.identity;
  const HandoffPart part = next(stream);
  if (part.header.kind != PartKind::ticket) throw Error::input("a hand-off begins with something else");
  HandoffTicket ticket = ticket_from(text_of(part));
  check_prompt(ticket.tokens, with_.model);
  stream.common.text = BlockHasher().next(with_.identity, ticket.tokens);
  stream.common.handoff = part.header.handoff;
  if (part.header.text != stream.common.text)
    throw Error::input("a hand-off is not of the text that it names");
  return ticket;
}

// In its order, and of this hand-off.
HandoffPart Takeover::next(Stream& stream) const {
  const std::vector<std::byte> bytes = stream.source->next(stream.serial);
  HandoffPart part = unpack(bytes);
  const PartHeader& h = part.header;
  if (h.identity != stream.common.identity)
    throw Error::input("a part of a hand-off was computed from other weights, or by another arithmetic")
        .remedy("run both sides with the same model, precision, kernels and program");
  if (stream.serial > 0 && (h.text != stream.common.text || h.handoff != stream.common.handoff))
    throw Error::input(fmt::format("part {} belongs to another hand-off", stream.serial));
  if (h.serial != stream.serial)
    throw Error::input(
        fmt::format("part {} of a hand-off comes where part {} should", h.serial, stream.serial));
  ++stream.serial;
  stream.bytes += bytes.size();
  return part;
}

std::uint64_t Takeover::parts() const {
  std::uint64_t parts = 0;
  for (const Stream& stream : streams_) parts += stream.serial;
  return parts;
}

std::uint64_t Takeover::bytes() const {
  std::uint64_t bytes = 0;
  for (const Stream& stream : streams_) bytes += stream.bytes;
  return bytes;
}

void Takeover::require_rules(const std::string& rules) {
  if (ticket_.first == FirstToken::hidden || ticket_.rules == rules) return;
  told([&] {
    throw Error::input(
        "the prefill chose the first token by other rules than the next ones would be chosen by")
        .remedy("give both sides the same options of sampling, or the prefill --handoff-first hidden");
  });
}

void Takeover::require_sums(const std::string& sums) {
  if (sums.empty() || ticket_.sums.empty() || ticket_.sums == sums) return;
  told([&] {
    throw Error::input(
        fmt::format("the prefill's ranks add by --rank-sum {}, these by {}", ticket_.sums, sums))
        .remedy("give both sides the same --rank-sum");
  });
}

void Takeover::read(std::size_t block_tokens) {
  told([&] {
    side_by_side([&](std::size_t i) { read(streams_[i], block_tokens); });
    join_ends();
    if (ticket_.first == FirstToken::id && !end_.first)
      throw Error::input("a hand-off without the first token that it promised");
    if (end_.first && *end_.first >= with_.model.vocabulary())
      throw Error::input(
          fmt::format("a hand-off's first token is {}, of {}", *end_.first, with_.model.vocabulary()));
    require_all();
    put_states();
  });
}

void Takeover::read(Stream& stream, std::size_t block_tokens) {
  for (;;) {
    const HandoffPart part = next(stream);
    if (part.header.kind == PartKind::end) {
      stream.end = end_from(text_of(part));
      break;
    }
    const std::lock_guard lock(mutex_);
    take(part, block_tokens);
  }
  if (stream.end.parts != stream.serial)
    throw Error::input(fmt::format("a hand-off of {} parts came in {}", stream.end.parts, stream.serial));
}

void Takeover::join_ends() {
  std::vector<std::vector<LayerSeal>> seals;
  for (const Stream& stream : streams_) {
    if (stream.end.first != streams_.front().end.first)
      throw Error::input("ranks of the prefill chose first tokens that differ");
    seals.push_back(stream.end.seals);
  }
  end_ = streams_.front().end;
  end_.seals = merged_seals(seals);
}

void Takeover::take(const HandoffPart& part, std::size_t block_tokens) {
  switch (part.header.kind) {
    case PartKind::keys:
    case PartKind::values: return take_rows(part, block_tokens);
    case PartKind::state: return take_state(part);
    case PartKind::hidden: return take_wide(hidden_, part, block_tokens);
    case PartKind::embedding: return take_wide(embedding_, part, block_tokens);
    case PartKind::draft: return take_draft(part);
    case PartKind::ticket:
    case PartKind::end: break;
  }
  throw Error::input("a hand-off has a second beginning");
}

void Takeover::take_rows(const HandoffPart& part, std::size_t block_tokens) {
  if (part.header.layer >= layers_.size())
    throw Error::input(
        fmt::format("rows of layer {}, and the model has {}", part.header.layer, layers_.size()));
  Layer& layer = layers_[part.header.layer];
  RowAssembly& rows = part.header.kind == PartKind::keys ? layer.keys : layer.values;
  rows.take(part, made_.place(part.header, block_tokens));
}

void Takeover::take_wide(std::optional<RowAssembly>& rows, const HandoffPart& part,
                         std::size_t block_tokens) {
  if (part.header.columns == 0 || part.header.columns > kMostWide)
    throw Error::input(fmt::format("a hidden state of {} numbers", part.header.columns));
  if (!rows) {
    const bool all = ticket_.draft == DraftHandoff::hidden || ticket_.draft == DraftHandoff::inputs;
    rows.emplace(tokens_, part.header.columns, 1, all ? 0 : tokens_ - 1);
  }
  rows->take(part, made_.place(part.header, block_tokens));
}

void Takeover::take_state(const HandoffPart& part) {
  const PartHeader& h = part.header;
  if (h.layer >= layers_.size() || h.matrix >= layers_[h.layer].states.size())
    throw Error::input(fmt::format("a state of layer {} that the model does not have", h.layer));
  if (h.first != tokens_)
    throw Error::input(fmt::format("a state of layer {} is not of the prompt's end", h.layer));
  layers_[h.layer].states[h.matrix].take(part);
}

void Takeover::take_draft(const HandoffPart& part) {
  const PartHeader& h = part.header;
  const std::vector<CacheWidth> widths = with_.model.cache_widths();
  const std::size_t modules = with_.model.draft_layers();
  const bool is_hidden = h.matrix == 2 && h.layer == 0;
  const bool is_rows = h.matrix < 2 && h.layer >= layers_.size() && h.layer < widths.size();
  if (ticket_.draft != DraftHandoff::rows || (!is_hidden && !is_rows))
    throw Error::input("rows of layers for multi-token prediction that the model does not have");
  const std::size_t before = tokens_ - std::min(tokens_, modules);
  const std::size_t rows = is_hidden ? tokens_ - before : before;
  const std::size_t columns = is_hidden       ? with_.shape.hidden
                              : h.matrix == 0 ? widths[h.layer].key_width
                                              : widths[h.layer].value_width;
  if (h.rows != rows || h.columns != columns)
    throw Error::input("rows of layers for multi-token prediction have another shape");
  drafts_[{h.layer, h.matrix}] = with_.ops.upload(numbers_of(part), h.rows, h.columns);
}

void Takeover::require_all() const {
  const auto require = [](const RowAssembly& rows, const std::string& what) {
    if (const auto missing = rows.missing())
      throw Error::input(fmt::format("a hand-off without {}: {}", what, *missing));
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const CacheWidth& width = with_.shape.layers[i].width;
    if (width.key_width > 0) require(layers_[i].keys, fmt::format("keys of layer {}", i));
    if (width.value_width > 0) require(layers_[i].values, fmt::format("values of layer {}", i));
    for (const StateAssembly& state : layers_[i].states)
      if (const auto missing = state.missing())
        throw Error::input(fmt::format("a hand-off without a state of layer {}: {}", i, *missing));
  }
  const bool all_hidden = ticket_.draft == DraftHandoff::hidden || ticket_.draft == DraftHandoff::inputs;
  if (all_hidden || ticket_.first == FirstToken::hidden) {
    if (!hidden_) throw Error::input("a hand-off without the hidden states that it promised");
    require(*hidden_, "hidden states");
  }
}

void Takeover::put_states() {
  for (const Layer& layer : layers_) {
    for (const StateAssembly& state : layer.states) {
      const StateShape shape = state.cut().shape();
      states_.push_back(matrix_of(with_.ops, state.bytes(), shape.rows, shape.columns));
    }
  }
}

// As BlockStorage has them: layer by layer, keys before values; behind the text nothing.
std::vector<double> Takeover::block_of(const CacheGroup& group, std::size_t first, std::size_t block_tokens) {
  std::vector<double> numbers;
  for (const std::size_t layer : group.layers) {
    if (layer >= layers_.size()) {  // of multi-token prediction: its rows are the drafter's own
      const CacheWidth width = with_.model.cache_widths()[layer];
      numbers.resize(numbers.size() + block_tokens * (width.key_width + width.value_width));
      continue;
    }
    for (RowAssembly* rows : {&layers_[layer].keys, &layers_[layer].values}) {
      const std::size_t width = rows->row_numbers(), end = std::min(tokens_, first + block_tokens);
      const auto from = rows->numbers().begin();
      numbers.insert(numbers.end(), from + static_cast<std::ptrdiff_t>(first * width),
                     from + static_cast<std::ptrdiff_t>(end * width));
      numbers.resize(numbers.size() + (first + block_tokens - end) * width,
                     std::numeric_limits<double>::quiet_NaN());
    }
  }
  return numbers;
}

HandedText Takeover::text(std::size_t block_tokens) {
  HandedText handed;
  handed.whole = std::none_of(with_.shape.layers.begin(), with_.shape.layers.end(), [&](const auto& layer) {
    return CacheShape::first_needed(layer.width, tokens_) > 0;
  });
  for (std::size_t i = 0; i < layers_.size() && made_.arrived; ++i) {
    for (RowAssembly* rows : {&layers_[i].keys, &layers_[i].values})
      made_.arrived(rows->numbers(), rows->row_numbers(), rows->heads());
  }
  for (const CacheGroup& group : cache_groups(with_.model.cache_widths())) {
    auto& blocks = handed.blocks.emplace_back();
    const std::size_t needed = CacheShape::first_needed({0, 0, {}, group.window}, tokens_);
    for (std::size_t first = 0; first < tokens_; first += block_tokens)
      blocks.push_back(first + block_tokens <= needed ? std::vector<double>()
                                                      : block_of(group, first, block_tokens));
  }
  handed.states = states_;
  handed.first = end_.first;
  if (!handed.first && hidden_) handed.hidden = hidden_rows(tokens_ - 1);
  handed.teach = teacher();
  return handed;
}

Matrix Takeover::hidden_rows(std::size_t first) {
  const std::size_t width = hidden_->row_numbers();
  return with_.ops.upload(std::span(hidden_->numbers()).subspan(first * width), tokens_ - first, width);
}

Matrix Takeover::hidden_anew() const {
  SequenceCache scratch(with_.ops, with_.model.cache_widths(), with_.model.context());
  Batch batch;
  batch.add(ticket_.tokens, scratch);
  const Matrix hidden = with_.model.hidden(batch, with_.ops, {});
  require_mapped();
  return hidden;
}

std::function<void(Drafter&, std::span<const TokenId>)> Takeover::teacher() {
  if (!made_.hands_drafts) return {};
  switch (ticket_.draft) {
    case DraftHandoff::none: return {};
    case DraftHandoff::recompute:
      return [this](Drafter& drafter, std::span<const TokenId> text) { drafter.see(text, 0, hidden_anew()); };
    case DraftHandoff::hidden:
    case DraftHandoff::inputs:
      return
          [this](Drafter& drafter, std::span<const TokenId> text) { drafter.see(text, 0, hidden_rows(0)); };
    case DraftHandoff::rows: break;
  }
  return [this](Drafter& drafter, std::span<const TokenId>) {
    auto whole = std::make_shared<std::vector<Matrix>>();
    for (std::uint64_t layer = 0; layer < with_.model.cache_widths().size(); ++layer) {
      for (const std::uint64_t matrix : {0U, 1U}) whole->push_back(drafts_[{layer, matrix}]);
    }
    whole->push_back(drafts_[{0, 2}]);
    drafter.take_over(whole, tokens_);
  };
}

void Takeover::check(const BlockStorage& storage, const StepPlan& plan) {
  if (checked_ || !made_.looks_at_seals) return;
  for (const StepPlan::Admission& admission : plan.admitted) {
    if (!admission.swapped_in) continue;
    std::vector<LayerSeal> found;
    std::size_t next = 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const CacheWidth& width = with_.shape.layers[i].width;
      const std::uint64_t heads = with_.shape.layers[i].heads;
      std::vector<std::size_t> rows;
      const BlockTable& table = admission.text->tables.at(storage.group_of(i));
      for (std::size_t t = CacheShape::first_needed(width, tokens_); t < tokens_; ++t)
        rows.push_back(static_cast<std::size_t>(storage.row(table, t)));
      const auto sealed = [&](const Matrix& all) {
        return all.columns() == 0 || all.rows() == 0
                   ? std::vector<BlockKey>()
                   : seal_heads(with_.ops.download(with_.ops.gather(all, rows)), all.columns(), heads);
      };
      LayerSeal& seal = found.emplace_back();
      seal.first_head = with_.shape.layers[i].own().first;
      seal.keys = sealed(storage.keys(i));
      seal.values = sealed(storage.values(i));
      for (const StateCut& cut : with_.shape.layers[i].states)
        seal_units(cut, with_.ops.download(states_.at(next++)), seal.states);
    }
    if (const std::string difference = first_difference(end_.seals, found); !difference.empty())
      throw Error::input("the decoder's cache is not what the prefill had in " + difference);
    checked_ = true;
    return;
  }
}

}  // namespace assay
