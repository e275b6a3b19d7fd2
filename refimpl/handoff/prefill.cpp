#include "refimpl/handoff/prefill.h"

#include <algorithm>
#include <random>
#include <string_view>

#include "core/system/error.h"
#include "core/system/text.h"
#include "refimpl/engine/sequence.h"
#include "refimpl/handoff/part_sender.h"
#include "refimpl/models/mapped_file.h"
#include "refimpl/speculation/layer_drafter.h"

namespace assay {
namespace {

HandoffNumber drawn_number() {
  std::random_device random;
  HandoffNumber number{};
  for (std::uint8_t& byte : number) byte = static_cast<std::uint8_t>(random());
  return number;
}

// Tells that layers are over: whoever names an intermediate of layer k is done with those before. Which forward passes do
// in any family, since the names are the same (docs/run.md).
class LayerWatch : public TapListener {
 public:
  explicit LayerWatch(std::function<void(std::size_t)> over) : over_(std::move(over)) {}
  void see(const std::string& name, const Matrix& value) override {
    constexpr std::string_view kLayers = "layers.";
    if (name == "embed") embedding = value;
    if (!std::string_view(name).starts_with(kLayers)) return;
    const std::string_view rest = std::string_view(name).substr(kLayers.size());
    const auto layer = parse_u64(rest.substr(0, rest.find('.')));
    if (layer) over_up_to(*layer);
  }
  void over_up_to(std::size_t layer) {
    for (; next_ < layer; ++next_) over_(next_);
  }
  void again() { next_ = 0; }
  Matrix embedding;  // of the step's tokens

 private:
  std::function<void(std::size_t)> over_;
  std::size_t next_ = 0;
};

class Prefill {
 public:
  Prefill(const HandoffModel& with, const GenerationRequest& request, const HandoffOptions& options,
          const std::vector<HandoffTaker>& takers, const HandoffMade& made)
      : with_(with),
        ops_(with.ops),
        request_(request),
        options_(options),
        made_(made),
        tokens_(request.prompt.size()),
        width_(cache_width(with.ops.arithmetic())),
        sequence_(with.model, with.ops, request.prompt),
        start_(HandoffClock::now()),
        takers_(takers),
        watch_([this](std::size_t layer) { layer_over(layer); }) {
    const PartHeader common = common_header();
    for (const HandoffTaker& taker : takers)
      senders_.push_back(std::make_unique<PartSender>(common, *taker.sink, start_));
    if (options.draft == DraftHandoff::rows) drafter_ = LayerDrafts(with.model, with.ops).start();
  }

  HandoffSent run() {
    const std::string ticket = to_text(HandoffTicket{.tokens = request_.prompt,
                                                     .first = options_.first,
                                                     .draft = options_.draft,
                                                     .text = options_.text,
                                                     .rules = options_.rules,
                                                     .sums = options_.sums});
    for (const auto& sender : senders_) {
      sender->send(PartKind::ticket, ticket);
      if (options_.by_layer) sender->start();
    }
    Matrix last;  // what the head saw of the last token
    while (sequence_.pending() > 0) last = read_chunk();
    send_states();
    if (drafter_) send_draft_rows();
    if (options_.first == FirstToken::id) sent_.first = first_token(last);
    sent_.prefill_seconds = now();
    if (options_.first == FirstToken::hidden && !sends_hidden() && with_.shape.has_head)
      send(PartKind::hidden, tokens_ - 1, last, sent_.hidden_bytes);
    HandoffEnd end{.parts = 0, .first = sent_.first, .seals = seals()};
    for (const auto& sender : senders_) {
      sender->start();
      end.parts = sender->queued() + 1;
      sender->send(PartKind::end, to_text(end));
    }
    for (const auto& sender : senders_) sender->finish(sent_);
    for (const HandoffTaker& taker : takers_) taker.sink->close();
    sent_.seconds = now();
    return std::move(sent_);
  }

 private:
  PartHeader common_header() const {
    PartHeader header;
    header.identity = with_.identity;
    header.text = BlockHasher().next(with_.identity, request_.prompt);
    header.handoff = drawn_number();
    return header;
  }
  double now() const { return std::chrono::duration<double>(HandoffClock::now() - start_).count(); }
  bool sends_hidden() const {
    return options_.draft == DraftHandoff::hidden || options_.draft == DraftHandoff::inputs;
  }

  Matrix read_chunk() {
    const std::span<const TokenId> tokens = sequence_.next(options_.chunk);
    Batch batch;
    batch.may_stop = true;
    batch.add(tokens, sequence_.cache());
    chunk_first_ = sequence_.cache().length();
    chunk_rows_ = tokens.size();
    layer_since_ = now();
    watch_.again();
    Matrix hidden;
    try {
      hidden = with_.model.hidden(batch, ops_, Taps(watch_));
    } catch (const Batch::Interrupted&) {
      throw Error::io("the hand-off was interrupted");
    }
    watch_.over_up_to(with_.shape.layers.size() / with_.shape.caches_a_layer());
    require_mapped();
    sequence_.cache().advance(tokens.size());
    // Of several ranks the one that tells the head's input, and the one whose stage embeds.
    if (sends_hidden() && with_.shape.has_head)
      send(PartKind::hidden, chunk_first_, hidden, sent_.hidden_bytes);
    if (options_.draft == DraftHandoff::inputs && with_.shape.rank == 0)
      send(PartKind::embedding, chunk_first_, watch_.embedding, sent_.hidden_bytes);
    if (drafter_) drafter_->see(sequence_.tokens(), chunk_first_, hidden);
    const std::size_t last[] = {hidden.rows() - 1};
    return ops_.gather(hidden, last);
  }

  // Its rows of this chunk are in the cache.
  void layer_over(std::size_t layer) {
    const double since = std::exchange(layer_since_, now());
    const std::size_t caches = with_.shape.caches_a_layer();
    for (std::size_t c = layer * caches; c < (layer + 1) * caches; ++c) {
      const CacheWidth& width = with_.shape.layers[c].width;
      const std::size_t end = chunk_first_ + chunk_rows_;
      const std::size_t first = std::max(chunk_first_, CacheShape::first_needed(width, tokens_));
      if (first >= end || width.key_width + width.value_width == 0) continue;
      sent_.timeline.layers.push_back({.layer = c,
                                       .first = first,
                                       .rows = end - first,
                                       .computed = {since, layer_since_},
                                       .sent = {},
                                       .bytes = 0});
      send_rows(PartKind::keys, c, sequence_.cache().keys(c).base, first, end);
      send_rows(PartKind::values, c, sequence_.cache().values(c).base, first, end);
    }
  }

  void send_rows(PartKind kind, std::size_t layer, const Matrix& all, std::size_t first, std::size_t end) {
    const CacheShape::Layer& shape = with_.shape.layers[layer];
    if (all.columns() == 0 || !shape.sends) return;
    const HandoffMade::Numbers rows = made_.stage(ops_.download(all.row_range(first, end - first)));
    for (std::size_t taker = 0; taker < takers_.size(); ++taker) {
      for (const HeadRange& heads : heads_for(takers_[taker], layer)) {
        PartHeader header;
        header.kind = kind;
        header.layer = made_.layer_of(layer);
        header.first = first;
        header.rows = end - first;
        header.heads = heads;
        const HandoffMade::Numbers numbers = heads == shape.own()
                                                 ? rows
                                                 : std::make_shared<std::vector<double>>(take_heads(
                                                       *rows, all.columns(), as_they_lie(heads, shape)));
        header.columns = numbers->size() / header.rows;
        sent_.row_bytes += header.rows * header.columns * bytes_of(width_);
        senders_[taker]->send(header, numbers, width_, sent_.timeline.layers.size() - 1);
      }
    }
  }
  // Of the heads that a row has at this rank.
  static HeadRange as_they_lie(const HeadRange& heads, const CacheShape::Layer& shape) {
    return shape.of_rank ? HeadRange{heads.first - shape.of_rank->first, heads.count, shape.heads} : heads;
  }

  std::vector<HeadRange> heads_for(const HandoffTaker& taker, std::size_t layer) const {
    const CacheShape::Layer& mine = with_.shape.layers[layer];
    std::vector<HeadRange> heads;
    if (taker.shape) {
      const CacheShape::Layer& theirs = taker.shape->layers.at(layer);
      const bool keeps = theirs.width.key_width + theirs.width.value_width > 0;
      if (const auto both = heads_of_both(mine.own(), theirs.own()); both && keeps) heads.push_back(*both);
      return heads;
    }
    const std::uint64_t senders = mine.heads > 1 ? options_.senders : 1;
    if (senders == 1) return {mine.own()};
    for (std::uint64_t rank = 0; rank < senders; ++rank)
      heads.push_back(made_.deal(mine.heads, senders, rank));
    return heads;
  }

  void send(PartKind kind, std::size_t first, const Matrix& rows, std::uint64_t& counted) {
    PartHeader header;
    header.kind = kind;
    header.first = first;
    send(header, rows, width_, counted);
  }
  void send(PartHeader header, const Matrix& rows, NumberWidth width, std::uint64_t& counted) {
    header.rows = rows.rows();
    header.columns = rows.columns();
    const auto numbers = std::make_shared<std::vector<double>>(ops_.download(rows));
    for (const auto& sender : senders_) {
      counted += header.rows * header.columns * bytes_of(width);
      sender->send(header, numbers, width);
    }
  }

  // As wide as they lie in memory: a state is not rounded as activations are.
  void send_states() {
    const SequenceCache::States states = sequence_.cache().states();
    std::size_t next = 0;
    for (std::size_t layer = 0; layer < with_.shape.layers.size(); ++layer) {
      for (std::size_t i = 0; i < with_.shape.layers[layer].states.size(); ++i)
        send_state(layer, i, ops_.download(states.at(next++)));
    }
  }
  void send_state(std::size_t layer, std::size_t matrix, const std::vector<double>& state) {
    const StateCut& cut = with_.shape.layers[layer].states[matrix];
    const NumberWidth width = stored_width(ops_.arithmetic());
    for (std::size_t taker = 0; taker < takers_.size(); ++taker) {
      const auto& to = takers_[taker].shape;
      if (to && to->layers.at(layer).states.empty()) continue;
      for (const HeadRange& heads : units_for(cut, to ? to->layers[layer].states.at(matrix) : cut)) {
        PartHeader header;
        header.kind = PartKind::state;
        header.layer = made_.layer_of(layer);
        header.matrix = matrix;
        header.first = tokens_;
        header.heads = heads;
        header.rows = cut.of_columns ? cut.whole.rows : heads.count;
        header.columns = cut.of_columns ? heads.count : cut.whole.columns;
        auto numbers =
            std::make_shared<std::vector<double>>(take_units(cut, state, heads.first, heads.count));
        sent_.state_bytes += numbers->size() * bytes_of(width);
        senders_[taker]->send(header, std::move(numbers), width);
      }
    }
  }

  // As one block of all tokens: rows that depend on nothing behind the prompt, and what the last ones are made of.
  void send_draft_rows() {
    const Drafter::Beside beside = drafter_->beside(sequence_.tokens(), tokens_, tokens_);
    for (std::size_t i = 0; beside && i < beside->size(); ++i) {
      if ((*beside)[i].empty()) continue;
      PartHeader header;
      header.kind = PartKind::draft;
      const bool is_hidden = i + 1 == beside->size();
      header.layer = is_hidden ? 0 : i / 2;
      header.matrix = is_hidden ? 2 : i % 2;
      send(header, (*beside)[i], width_, sent_.draft_bytes);
    }
  }

  TokenId first_token(const Matrix& last) {
    ServingRequest request;
    request.text = request_;
    const Matrix logits = with_.model.logits(last, ops_, {});
    return sampler_of(request, 0).sample(ops_.download(logits));
  }

  std::vector<LayerSeal> seals() {
    std::vector<LayerSeal> seals;
    const SequenceCache::States states = sequence_.cache().states();
    std::size_t next = 0;
    for (std::size_t layer = 0; layer < with_.shape.layers.size(); ++layer) {
      const CacheWidth& width = with_.shape.layers[layer].width;
      const std::uint64_t heads = with_.shape.layers[layer].heads;
      const std::size_t first = CacheShape::first_needed(width, tokens_);
      const auto sealed = [&](const Matrix& all) {
        return all.columns() == 0
                   ? std::vector<BlockKey>()
                   : seal_heads(ops_.download(all.row_range(first, tokens_ - first)), all.columns(), heads);
      };
      LayerSeal& seal = seals.emplace_back();
      seal.first_head = with_.shape.layers[layer].own().first;
      seal.keys = sealed(sequence_.cache().keys(layer).base);
      seal.values = sealed(sequence_.cache().values(layer).base);
      for (const StateCut& cut : with_.shape.layers[layer].states)
        seal_units(cut, ops_.download(states.at(next++)), seal.states);
    }
    return seals;
  }

  const HandoffModel& with_;
  Ops& ops_;
  const GenerationRequest& request_;
  const HandoffOptions& options_;
  const HandoffMade& made_;
  std::size_t tokens_;
  NumberWidth width_;
  Sequence sequence_;
  std::unique_ptr<Drafter> drafter_;
  HandoffClock::time_point start_;
  HandoffSent sent_;
  const std::vector<HandoffTaker>& takers_;
  std::vector<std::unique_ptr<PartSender>> senders_;  // one a taker
  LayerWatch watch_;
  std::size_t chunk_first_ = 0, chunk_rows_ = 0;
  double layer_since_ = 0;
};

}  // namespace

BlockKey handoff_identity(std::string_view of_run) {
  return BlockHasher().root(of_run);
}

HandoffSent hand_over(const HandoffModel& with, const GenerationRequest& request,
                      const HandoffOptions& options, const std::vector<HandoffTaker>& takers,
                      const HandoffMade& made) {
  check_prompt(request.prompt, with.model);
  if (takers.empty()) throw Error::internal("a hand-off to nobody");
  const bool over_ranks = takers.front().shape || with.shape.ranks > 1;
  // A stage has no such layers itself; the decoder asks for its own.
  if (options.draft != DraftHandoff::none && with.shape.ranks == 1 && with.model.draft_layers() == 0)
    throw Error::usage("the model has no layer for multi-token prediction, whose cache could be handed over");
  if (over_ranks && options.draft == DraftHandoff::rows)
    throw Error::usage("over ranks rows of prediction layers would come from several")
        .remedy("--handoff-draft none, recompute, hidden or inputs");
  if (over_ranks && options.senders != 1)
    throw Error::usage("ranks have heads of their own: nothing is left for --handoff-heads to deal out");
  return Prefill(with, request, options, takers, made).run();
}

HandoffSent hand_over(const HandoffModel& with, const GenerationRequest& request,
                      const HandoffOptions& options, PartSink& sink, const HandoffMade& made) {
  return hand_over(with, request, options, std::vector<HandoffTaker>{{.sink = &sink}}, made);
}

}  // namespace assay
