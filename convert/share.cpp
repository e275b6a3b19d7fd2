#include "convert/share.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <numeric>
#include <queue>
#include <set>
#include <thread>

#include "convert/sections.h"
#include "core/system/error.h"
#include "core/system/threads.h"

namespace assay {
namespace {

// Of one rank there is one process.
class RankLock {
 public:
  RankLock(const fs::path& folder, std::uint32_t rank) {
    const fs::path path = folder / Journal::rank_lock(rank);
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0) throw Error::from_errno("open", errno).in(path);
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
    const int reason = errno;
    ::close(descriptor_);
    if (reason != EWOULDBLOCK) throw Error::from_errno("lock", reason).in(path);
    throw Error::refused(fmt::format("rank {} is at work here already", rank)).in(folder);
  }
  RankLock(const RankLock&) = delete;
  RankLock& operator=(const RankLock&) = delete;
  ~RankLock() { ::close(descriptor_); }

 private:
  int descriptor_ = -1;
};

class SharedConversion {
 public:
  SharedConversion(const fs::path& out, const ConversionPlan& plan, const ConvertOptions& options,
                   const ConversionShare& share, ProgressMode mode)
      : out_(out),
        plan_(plan),
        options_(options),
        share_(share),
        mode_(mode),
        key_(Journal::key(plan, options)) {
    if (!plan.gguf) return;
    for (const OutputShard& file : plan.shards) {
      auto parts = sections_of(file);
      std::move(parts.begin(), parts.end(), std::back_inserter(sections_));
    }
  }

  SharedResult run() {
    result_.all = units().size();
    if (is_finished(plan_, options_, out_, mode_)) {
      result_.finished_elsewhere = true;
      return result_;
    }
    const std::unique_ptr<PartialFolder> entered = enter();
    if (entered == nullptr) {
      result_.finished_elsewhere = true;
      return result_;
    }
    PartialFolder& folder = *entered;
    try {
      // A record, or a journal that is no rank's: somebody had begun to finish it, and files may have their names.
      const bool begun = fs::exists(folder.record()) || fs::exists(folder.path() / Journal::kName);
      if (!begun) write_mine(folder);
    } catch (const Interrupted&) {
      result_.interrupted = true;
      return result_;
    } catch (const Error& error) {
      throw folder.after_share(error);
    }
    if (result_.left > 0) return result_;
    if (!folder.take_over()) {
      result_.finished_elsewhere = true;
      return result_;
    }
    result_.whole = finish_shared(out_, folder, plan_, options_, mode_);
    return result_;
  }

 private:
  // A rank that comes while another finishes what all have written waits for it; null: that one is done.
  std::unique_ptr<PartialFolder> enter() {
    std::unique_ptr<PartialFolder> folder;
    for (int i = 1; folder == nullptr; ++i) {
      try {
        folder = std::make_unique<PartialFolder>(out_, PartialFolder::Begin::share);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::refused || i == PartialFolder::kLooks) throw;
        std::this_thread::sleep_for(PartialFolder::kBetweenLooks);
      }
    }
    // What had no final name before may have it now, and the folder be an empty one of ours.
    if (fs::exists(out_) && is_finished(plan_, options_, out_, mode_)) return nullptr;
    return folder;
  }

  const std::vector<OutputShard>& units() const { return plan_.gguf ? sections_ : plan_.shards; }

  void write_mine(const PartialFolder& folder) {
    const fs::path& partial = folder.path();
    check_space(plan_, folder.out()).require(folder.out());
    const RankLock lock(partial, share_.rank);
    Journal::read_all(partial, key_);  // of another conversion nothing is touched
    Journal journal(partial, key_, Journal::rank_name(share_.rank));
    const std::set<std::string> done = what_is_done(journal, partial);
    const std::vector<const OutputShard*> mine = choose(done);
    if (plan_.gguf) begin_gguf(partial);
    if (!mine.empty()) write(mine, partial, journal);
    result_.left = count_left(partial);
  }

  // What others noted is taken as it is: each looks after its own, which is read again, every byte.
  std::set<std::string> what_is_done(const Journal& own, const fs::path& partial) {
    std::set<std::string> done;
    for (const auto& [name, finished] : Journal::read_all(partial, key_)) {
      if (!own.finished().contains(name)) done.insert(name);
    }
    for (const OutputShard& unit : units()) {
      const auto found = own.finished().find(unit.name);
      if (found == own.finished().end()) continue;
      std::vector<char> whole(found->second.files.size());
      parallel_for(options_.jobs, whole.size(), [&](std::size_t i) {
        if (interrupted()) throw Interrupted{};
        whole[i] = is_whole(unit, found->second, i, partial);
      });
      if (std::find(whole.begin(), whole.end(), 0) != whole.end()) continue;
      done.insert(unit.name);
      ++result_.reused;
    }
    return done;
  }

  std::vector<const OutputShard*> choose(const std::set<std::string>& done) {
    std::vector<std::uint64_t> sizes;
    for (const OutputShard& unit : units()) sizes.push_back(unit.bytes);
    const std::vector<std::uint32_t> owner = deal_by_size(sizes, share_.ranks);
    std::vector<const OutputShard*> mine;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (owner[i] != share_.rank) continue;
      ++result_.mine;
      if (!done.contains(units()[i].name)) mine.push_back(&units()[i]);
    }
    return mine;
  }

  // Every rank writes the same header and the same zeros at the end, which no section touches.
  void begin_gguf(const fs::path& partial) {
    for (const OutputShard& file : plan_.shards) {
      if (!options_.overwrite) check_name_is_free(plan_, file, out_);
      begin_file(file, partial);
    }
  }

  void write(const std::vector<const OutputShard*>& mine, const fs::path& partial, Journal& journal) {
    const CheckpointReader source(plan_.checkpoint);
    std::optional<GivenScales> given;
    if (!options_.scales_from.empty()) given.emplace(options_.scales_from, options_.jobs);
    check_merges(plan_, source);
    std::uint64_t bytes = 0;
    for (const OutputShard* unit : mine) bytes += unit->bytes;
    Progress progress(mode_, "Converting", bytes);
    const PipelineContext context{plan_, options_, source, given ? &*given : nullptr, progress};
    std::mutex mutex;
    write_shards(context, mine, partial, [&](WrittenShard written) {
      FinishedShard finished{written.sink.finished(), std::move(written.errors)};
      written.sink.commit();
      source.check_unchanged();
      const std::lock_guard guard(mutex);
      journal.add(written.shard.name, std::move(finished));
    });
  }

  std::size_t count_left(const fs::path& partial) const {
    const auto done = Journal::read_all(partial, key_);
    return static_cast<std::size_t>(std::count_if(
        units().begin(), units().end(), [&](const OutputShard& unit) { return !done.contains(unit.name); }));
  }

  const fs::path& out_;
  const ConversionPlan& plan_;
  const ConvertOptions& options_;
  const ConversionShare share_;
  const ProgressMode mode_;
  const std::string key_;
  std::vector<OutputShard> sections_;
  SharedResult result_;
};

}  // namespace

std::vector<std::uint32_t> deal_by_size(std::span<const std::uint64_t> sizes, std::uint32_t ranks) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  using Hand = std::pair<std::uint64_t, std::uint32_t>;  // what it holds, the rank
  std::priority_queue<Hand, std::vector<Hand>, std::greater<>> hands;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) hands.emplace(0, rank);
  std::vector<std::uint32_t> owner(sizes.size());
  for (const std::size_t i : order) {
    const auto [held, rank] = hands.top();
    hands.pop();
    owner[i] = rank;
    hands.emplace(held + sizes[i], rank);
  }
  return owner;
}

SharedResult convert_share(const fs::path& out, const ConversionPlan& plan, const ConvertOptions& options,
                           const ConversionShare& share, ProgressMode progress) {
  jobs_within_memory(plan, options);
  return SharedConversion(out, plan, options, share, progress).run();
}

}  // namespace assay
