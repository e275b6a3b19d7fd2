#include "refimpl/ranks/rank_run.h"

#include "refimpl/ops/sample.h"
#include "refimpl/ranks/thread_transport.h"

namespace assay {
namespace {

class TapKeeper final : public TapListener {
 public:
  TapKeeper(Ops& ops, std::vector<RankTap>& taps) : ops_(ops), taps_(taps) {}
  void see(const std::string& name, const Matrix& value) override {
    taps_.push_back({name, value.rows(), value.columns(), ops_.download(value)});
  }

 private:
  Ops& ops_;
  std::vector<RankTap>& taps_;
};

// The texts of one copy, as one rank computes them.
class Reader {
 public:
  Reader(RankedModel& ranked, const RankRunRequest& request, RankRun& run)
      : ranked_(ranked), request_(request), run_(run), report_(run.ranks.at(ranked.place().rank)) {
    for (std::size_t i = ranked.place().copy(); i < request.texts.size(); i += ranked.place().grid.dp)
      texts_.push_back(i);
  }

  void read() {
    const RankModel& model = ranked_.model();
    for (std::size_t i = 0; i < texts_.size(); ++i)
      caches_.emplace_back(ranked_.ops(), model.cache_widths(), model.context());
    std::vector<std::vector<TokenId>> next;
    for (const std::size_t text : texts_) next.push_back(request_.texts[text]);
    for (std::size_t i = 0; i <= request_.decode && !texts_.empty(); ++i) {
      step(next);
      if (!goes_on()) break;
    }
    model.keep_company(ranked_.ops());
    tell();
  }

 private:
  // Every text's next tokens, in one batch; `next` becomes the likeliest ones.
  void step(std::vector<std::vector<TokenId>>& next) {
    Batch batch;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      caches_[i].require_room(next[i].size());
      batch.add(next[i], caches_[i]);
    }
    TapKeeper keeper(ranked_.ops(), report_.taps);
    const Taps taps = request_.taps ? Taps(keeper) : Taps();
    const Matrix hidden = ranked_.model().hidden(batch, ranked_.ops(), taps);
    const std::vector<double> rows =
        ranked_.ops().download(ranked_.model().logits(hidden, ranked_.ops(), taps));
    const std::size_t width = ranked_.model().vocabulary();
    const bool speaks = ranked_.place().in_tp() == 0 && ranked_.place().first_stage();
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      const Batch::Sequence& s = batch.sequences[i];
      caches_[i].advance(s.count);
      const auto own = std::span(rows).subspan(s.first * width, s.count * width);
      std::vector<double>& all = run_.logits.at(texts_[i]);
      if (speaks) all.insert(all.end(), own.begin(), own.end());
      next[i] = {static_cast<TokenId>(argmax(own.last(width)))};
    }
  }

  // Where rotary frequencies follow the length a text would have to be read anew.
  bool goes_on() const {
    for (const SequenceCache& cache : caches_) {
      if (cache.length() >= cache.limit() ||
          !ranked_.model().cache_serves(cache.length(), cache.length() + 1))
        return false;
    }
    return true;
  }

  void tell() {
    report_.place = ranked_.place();
    report_.held_bytes = ranked_.cut().held_bytes();
    const std::size_t real =
        ranked_.ops().arithmetic().storage() == Real::f64 ? sizeof(double) : sizeof(float);
    for (const CacheWidth& width : ranked_.model().cache_widths())
      report_.cache_bytes += (width.key_width + width.value_width) * real;
    RankGroups& groups = ranked_.groups();
    for (const RankGroup* group : {&groups.tensor, &groups.stage, &groups.expert, &groups.pipeline})
      report_.doubles_sent += group->doubles_sent();
    report_.worst_ratio = ranked_.ops().worst_ratio();
    report_.idle_passes = ranked_.model().idle_passes();
  }

  RankedModel& ranked_;
  const RankRunRequest& request_;
  RankRun& run_;
  RankReport& report_;
  std::vector<std::size_t> texts_;
  std::vector<SequenceCache> caches_;
};

}  // namespace

RankRun run_ranks(const RankRunRequest& request) {
  RankRun run;
  run.logits.resize(request.texts.size());
  run.ranks.resize(request.settings.grid.ranks());
  run_on_threads(request.settings.grid.ranks(), request.limit, [&](Transport& transport) {
    RankedModel ranked(request.path, request.settings, transport);
    Reader(ranked, request, run).read();
  });
  return run;
}

}  // namespace assay
