#include "convert/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <list>
#include <mutex>

#include "convert/derived_rows.h"
#include "convert/scale_map.h"
#include "convert/shard_pieces.h"
#include "convert/whole_files.h"
#include "core/model/weight_encoder.h"
#include "core/system/error.h"
#include "core/system/threads.h"

namespace assay {
namespace {

// Hashed side by side (OutputDigests); so many, or sections of one, are begun anew after a kill.
constexpr std::size_t kOpenShards = 4;
constexpr std::size_t kOpenFiles = 256;
constexpr std::size_t kClosingAtOnce = 4;
constexpr auto kLookAgain = std::chrono::milliseconds(20);  // a thread that found nothing to do

// A shard from its first piece to its name.
struct OpenShard {
  OpenShard(const PipelineContext& context, const OutputShard& what, const fs::path& folder,
            OutputDigests& digests, GrowingFile* whole)
      : shard(what),
        sink(std::make_unique<ShardSink>(context.plan, what, folder, digests, whole)),
        pieces(context, what, *sink),
        files(sink->digests()) {}
  const OutputShard& shard;
  std::unique_ptr<ShardSink> sink;
  ShardPieces pieces;
  std::size_t files;         // not hashed to their ends yet
  bool written = false;      // every piece has run
  std::future<void> synced;  // begun then
};

// The threads of a conversion: each in turn writes a piece of one of a few shards or, when enough waits,
// hashes what has been written of all of them.
class Crew {
 public:
  Crew(const PipelineContext& context, std::span<const OutputShard* const> shards, const fs::path& folder,
       const CloseShard& close)
      : context_(context), shards_(shards), folder_(folder), close_(close) {
    const std::uint64_t ranks = context.plan.ranks ? context.plan.ranks->grid().tp : 1;
    most_open_ = std::clamp<std::size_t>(kOpenFiles / ranks, 1, kOpenShards);
    if (context.file_digests != nullptr) whole_.emplace(context.plan, shards, folder, digests_);
  }

  void run() {
    const int jobs = jobs_within_memory(context_.plan, context_.options);
    parallel_for(jobs, static_cast<std::size_t>(jobs), [&](std::size_t) { work(); });
    for (std::future<void>& one : closing_) one.get();
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (whole_) *context_.file_digests = whole_->digests();
  }

 private:
  void work() {
    try {
      while (!over()) {
        if (interrupted()) throw Interrupted{};
        if (digests_.pressing() && hash()) continue;
        if (write_piece() || hash()) continue;
        std::unique_lock lock(mutex_);
        if (!over_ && failure_ == nullptr) something_new_.wait_for(lock, kLookAgain);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (failure_ == nullptr) failure_ = std::current_exception();
      something_new_.notify_all();
    }
  }

  bool over() {
    const std::lock_guard lock(mutex_);
    const bool sections_done = next_shard_ == shards_.size() && open_.empty();
    if (sections_done && whole_ && !whole_->all_hashed()) whole_->all_written();
    over_ = sections_done && (!whole_ || whole_->all_hashed());
    return over_ || failure_ != nullptr;
  }

  bool write_piece() {
    OpenShard* shard = nullptr;
    const std::function<void()>* piece = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (open_.size() < most_open_ && next_shard_ < shards_.size()) open_next();
      for (std::size_t i = 0; i < open_.size() && piece == nullptr; ++i) {
        shard = open_.front().get();
        open_.splice(open_.end(), open_, open_.begin());  // the next piece is another shard's
        piece = shard->pieces.next();
      }
    }
    if (piece == nullptr) return false;
    (*piece)();
    std::unique_lock lock(mutex_);
    if (shard->pieces.finished()) {
      all_written(*shard);
      close_if_done(lock, *shard);
    }
    something_new_.notify_one();
    return true;
  }

  void open_next() {
    const OutputShard& shard = *shards_[next_shard_++];
    context_.progress.item(shard.name);
    open_.push_back(std::make_unique<OpenShard>(context_, shard, folder_, digests_,
                                                whole_ ? whole_->of(shard) : nullptr));
    if (open_.back()->pieces.empty()) all_written(*open_.back());
  }

  void all_written(OpenShard& shard) {
    shard.written = true;
    shard.sink->all_written();
    shard.synced = std::async(std::launch::async, [sink = shard.sink.get()] { sink->sync(); });
    something_new_.notify_all();
  }

  bool hash() {
    bool found = false;
    const std::vector<GrowingFile*> done = digests_.work(found);
    if (done.empty()) return found;
    std::unique_lock lock(mutex_);
    for (const GrowingFile* file : done) {
      if (whole_ && whole_->take(*file)) continue;
      const auto shard =
          std::find_if(open_.begin(), open_.end(), [&](const auto& open) { return open->sink->owns(*file); });
      --(*shard)->files;
      close_if_done(lock, **shard);
    }
    something_new_.notify_all();
    return true;
  }

  // The last byte may be hashed before the piece that wrote it has come back. On a thread of its own, for it
  // waits for the disk.
  void close_if_done(std::unique_lock<std::mutex>& lock, const OpenShard& done) {
    if (!done.written || done.files > 0) return;
    const auto at =
        std::find_if(open_.begin(), open_.end(), [&](const auto& open) { return open.get() == &done; });
    const std::shared_ptr<OpenShard> shard = std::move(*at);
    open_.erase(at);
    closing_.push_back(std::async(std::launch::async, [this, shard] {
      shard->synced.get();
      if (context_.early != nullptr) context_.early->add(shard->shard, shard->sink->file().readable());
      close_({shard->shard, *shard->sink, shard->pieces.errors()});
    }));
    if (closing_.size() <= kClosingAtOnce) return;
    std::future<void> oldest = std::move(closing_.front());
    closing_.pop_front();
    lock.unlock();
    oldest.get();
    lock.lock();
  }

  const PipelineContext& context_;
  const std::span<const OutputShard* const> shards_;
  const fs::path& folder_;
  const CloseShard& close_;
  std::size_t most_open_ = kOpenShards;
  OutputDigests digests_;

  std::mutex mutex_;  // of all that follows
  std::condition_variable something_new_;
  std::optional<WholeFiles> whole_;
  std::list<std::unique_ptr<OpenShard>> open_;
  std::size_t next_shard_ = 0;
  bool over_ = false;
  std::exception_ptr failure_;
  std::deque<std::future<void>> closing_;
};

}  // namespace

void write_shards(const PipelineContext& context, std::span<const OutputShard* const> shards,
                  const fs::path& folder, const CloseShard& close) {
  Crew(context, shards, folder, close).run();
}

void read_gathered(const CheckpointReader& source, const TensorCut& cut, std::uint64_t at,
                   std::span<std::byte> bytes) {
  gather(cut, at, bytes, [&](std::uint32_t file, std::uint64_t offset, std::span<std::byte> part) {
    source.file(file).read_exactly(offset, part);
  });
}

void check_merges(const ConversionPlan& plan, const CheckpointReader& source) {
  std::uint64_t disagreeing = 0, blocks = 0;
  std::string example;
  for (const Work& work : plan.works) {
    const LogicalTensor& tensor = plan.stored.tensors[work.tensor];
    if (work.action != WorkAction::reblock) continue;
    const ScaleMap rows{tensor.rows, tensor.form.block_rows, plan.spec.block_rows};
    const ScaleMap columns{tensor.columns, tensor.form.block_columns, plan.spec.block_columns};
    if (!rows.merges() && !columns.merges()) continue;
    std::vector<float> old(tensor.slices * tensor.scale_rows() * tensor.scale_columns());
    StoredReader(source, tensor).decode_scales(0, tensor.slices * tensor.scale_rows(), old);
    for (std::uint64_t block = 0; block < tensor.slices * rows.new_count(); ++block) {
      const std::uint64_t top = block / rows.new_count() * rows.old_count(), i = block % rows.new_count();
      for (std::uint64_t j = 0; j < columns.new_count(); ++j, ++blocks) {
        const float first = old[(top + rows.first(i)) * columns.old_count() + columns.first(j)];
        bool agree = true;
        for (std::uint64_t r = rows.first(i); r <= rows.last(i); ++r) {
          for (std::uint64_t c = columns.first(j); c <= columns.last(j); ++c)
            agree &= old[(top + r) * columns.old_count() + c] == first;
        }
        if (!agree && disagreeing++ == 0) example = tensor.name;
      }
    }
  }
  if (disagreeing == 0) return;
  throw Error::refused(
      fmt::format("{} of {} larger blocks would join blocks whose scales differ", disagreeing, blocks))
      .tensor(example)
      .remedy("merging is exact only where scales agree; quantize anew with --to fp8:block=… instead");
}

std::uint64_t largest_piece(const ConversionPlan& plan) {
  std::uint64_t largest = 1 << 20;
  for (const Work& work : plan.works) {
    const LogicalTensor& tensor = plan.stored.tensors[work.tensor];
    std::uint64_t bytes = 0;
    if (work.action == WorkAction::reblock) {
      bytes = 4 * plan.checkpoint.tensors[*tensor.scale].bytes;
    } else if (work.action != WorkAction::copy) {
      const std::uint64_t rows = std::min(tensor.all_rows(), rows_a_piece(plan, work));
      bytes = rows * tensor.columns * kPieceBytesAnElement;
    }
    largest = std::max(largest, bytes);
  }
  for (const DerivedOutput& output : plan.derived) {
    const std::uint64_t rows = std::min(output.made.rows(), rows_a_piece(output.made));
    largest = std::max(largest, rows * output.made.columns() * kPieceBytesAnElement);
  }
  return largest;
}

int jobs_within_memory(const ConversionPlan& plan, const ConvertOptions& options) {
  const std::uint64_t piece = largest_piece(plan);
  if (piece > options.memory) {
    throw Error::refused(
        fmt::format("one piece of work takes {} bytes of memory, --memory allows {}", piece, options.memory));
  }
  return static_cast<int>(
      std::clamp<std::uint64_t>(options.memory / piece, 1, static_cast<std::uint64_t>(options.jobs)));
}

}  // namespace assay
