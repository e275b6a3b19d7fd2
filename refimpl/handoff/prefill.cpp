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
          const std::vector<PartSink*>& sinks, const HandoffMade& made)
      : with_(with),
        ops_(with.ops),
        request_(request),
        options_(options),
        made_(made),
        tokens_(request.prompt.size()),
        width_(cache_width(with.ops.arithmetic())),
        sequence_(with.model, with.ops, request.prompt),
        start_(HandoffClock::now()),
        sinks_(sinks),
        watch_([this](std::size_t layer) { layer_over(layer); }) {
    const PartHeader common = common_header();
    for (PartSink* sink : sinks) senders_.push_back(std::make_unique<PartSender>(common, *sink, start_));
    if (options.draft == DraftHandoff::rows) drafter_ = LayerDrafts(with.model, with.ops).start();
  }

  HandoffSent run() {
    const std::string ticket = to_text(HandoffTicket{.tokens = request_.prompt,
                                                     .first = options_.first,
                                                     .draft = options_.draft,
                                                     .text = options_.text,
                                                     .rules = options_.rules});
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
    if (options_.first == FirstToken::hidden && !sends_hidden() && with_.shape.rank == 0)
      send(PartKind::hidden, tokens_ - 1, last, sent_.hidden_bytes);
    HandoffEnd end{.parts = 0, .first = sent_.first, .seals = seals()};
    for (const auto& sender : senders_) {
      sender->start();
      end.parts = sender->queued() + 1;
      sender->send(PartKind::end, to_text(end));
    }
    for (const auto& sender : senders_) sender->finish(sent_);
    for (PartSink* sink : sinks_) sink->close();
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
  // Not to everybody, where each is sent heads of its own.
  bool deals_out() const { return senders_.size() > 1; }

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
    if (sends_hidden()) send(PartKind::hidden, chunk_first_, hidden, sent_.hidden_bytes);
    if (options_.draft == DraftHandoff::inputs)
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
    if (all.columns() == 0 || !with_.shape.layers[layer].sends) return;
    const HandoffMade::Numbers rows = made_.stage(ops_.download(all.row_range(first, end - first)));
    const std::uint64_t heads = with_.shape.layers[layer].heads;
    const HeadRange own = with_.shape.layers[layer].own();
    const std::uint64_t senders = deals_out() ? senders_.size() : heads > 1 ? options_.senders : 1;
    for (std::uint64_t rank = 0; rank < senders; ++rank) {
      PartHeader header;
      header.kind = kind;
      header.layer = made_.layer_of(layer);
      header.first = first;
      header.rows = end - first;
      header.heads = senders == 1 ? own : made_.deal(heads, senders, rank);
      header.columns = senders == 1 ? all.columns() : all.columns() / header.heads.of * header.heads.count;
      sent_.row_bytes += header.rows * header.columns * bytes_of(width_);
      const HandoffMade::Numbers numbers =
          senders == 1
              ? rows
              : std::make_shared<std::vector<double>>(take_heads(*rows, all.columns(), header.heads));
      senders_[deals_out() ? rank : 0]->send(header, numbers, width_, sent_.timeline.layers.size() - 1);
    }
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
      for (std::size_t i = 0; i < with_.shape.layers[layer].width.states.size(); ++i) {
        PartHeader header;
        header.kind = PartKind::state;
        header.layer = made_.layer_of(layer);
        header.matrix = i;
        header.first = tokens_;
        send(header, states.at(next++), stored_width(ops_.arithmetic()), sent_.state_bytes);
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
      for (std::size_t i = 0; i < width.states.size(); ++i, ++next)
        seal.states.push_back(
            seal_heads(ops_.download(states.at(next)), states.at(next).columns(), 1).front());
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
  std::vector<PartSink*> sinks_;
  std::vector<std::unique_ptr<PartSender>> senders_;  // one a sink
  LayerWatch watch_;
  std::size_t chunk_first_ = 0, chunk_rows_ = 0;
  double layer_since_ = 0;
};

}  // namespace

BlockKey handoff_identity(std::string_view of_run) {
  return BlockHasher().root(of_run);
}

HandoffSent hand_over(const HandoffModel& with, const GenerationRequest& request,
                      const HandoffOptions& options, const std::vector<PartSink*>& sinks,
                      const HandoffMade& made) {
  check_prompt(request.prompt, with.model);
  if (options.draft != DraftHandoff::none && with.model.draft_layers() == 0)
    throw Error::usage("the model has no layer for multi-token prediction, whose cache could be handed over");
  if (sinks.empty()) throw Error::internal("a hand-off to nobody");
  const bool over_ranks = sinks.size() > 1 || with.shape.ranks > 1;
  if (over_ranks && options.draft != DraftHandoff::none && options.draft != DraftHandoff::recompute)
    throw Error::usage("over ranks prediction layers begin with nothing, or read the prompt again")
        .remedy("--handoff-draft none or recompute");
  if (over_ranks && options.senders != 1)
    throw Error::usage("ranks have heads of their own: nothing is left for --handoff-heads to deal out");
  if (sinks.size() > 1 && with.shape.ranks > 1)
    throw Error::usage("ranks of a prefill feed one decoder, and one prefill ranks of a decoder: not both");
  return Prefill(with, request, options, sinks, made).run();
}

HandoffSent hand_over(const HandoffModel& with, const GenerationRequest& request,
                      const HandoffOptions& options, PartSink& sink, const HandoffMade& made) {
  return hand_over(with, request, options, std::vector<PartSink*>{&sink}, made);
}

}  // namespace assay
