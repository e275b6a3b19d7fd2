#include "convert/convert.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <mutex>
#include <set>

#include "convert/config_rewrite.h"
#include "convert/copy_range.h"
#include "convert/other_files.h"
#include "convert/sections.h"
#include "core/formats/checksum_manifest.h"
#include "core/formats/hash/hasher.h"
#include "core/formats/stream_digest.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/output_paths.h"
#include "core/system/report.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr const char* kFoundWhole =
    "an earlier run had finished this output; every byte is as its journal has it";
constexpr const char* kFoundFinished =
    "an earlier run had finished this output: sizes and headers are those of this conversion";
constexpr const char* kAndDigests = ", and every file is as the SHA256SUMS there has it";

class Conversion {
 public:
  // `trusting`: what the journal tells of is not read again.
  Conversion(const fs::path& out, PartialFolder& folder, const ConversionPlan& plan,
             const ConvertOptions& options, ProgressMode mode, bool trusting = false)
      : out_(out),
        trusting_(trusting),
        folder_(folder),
        partial_(folder_.path()),
        plan_(plan),
        options_(options),
        mode_(mode),
        source_(plan.checkpoint) {
    if (!options.scales_from.empty()) given_.emplace(options.scales_from, options.jobs);
    if (!plan.gguf) return;
    for (const OutputShard& file : plan.shards) {
      auto parts = sections_of(file);
      std::move(parts.begin(), parts.end(), std::back_inserter(sections_));
    }
  }

  ConvertResult run() {
    try {
      if (was_published() || was_finished()) return std::move(result_);
      check_space(plan_, folder_.out()).require(folder_.out());
      prepare();
      write_shards();
      write_the_rest();
      source_.check_unchanged();
      if (plan_.lossless() && options_.prove && !prove_it()) return std::move(result_);
      finish();
    } catch (const Interrupted&) {
      result_.interrupted = true;
    } catch (const Error& error) {
      if (!journal_) throw;  // what lies there is another conversion's
      throw folder_.after(error);
    }
    return std::move(result_);
  }

 private:
  // What is written, and noted in the journal, at a time.
  const std::vector<OutputShard>& units() const { return plan_.gguf ? sections_ : plan_.shards; }
  fs::path final_folder() const { return plan_.folder_of(folder_.out()); }

  // By a run that was killed while it tidied up. What is left of it goes.
  bool was_published() {
    if (!options_.resume || !folder_.is_sealed()) return false;
    const auto finished = Journal::read(folder_.record(), Journal::key(plan_, options_));
    if (whole(finished, plan_.shards, final_folder()).size() != plan_.shards.size()) {
      folder_.unseal();
      return false;
    }
    folder_.remove();
    take_results(finished);
    result_.reused = plan_.gguf ? plan_.derived.size() : plan_.shards.size();
    result_.note = kFoundWhole;
    return true;
  }

  // By one that had tidied up.
  bool was_finished() {
    if (!is_finished(plan_, options_, out_, mode_)) return false;
    result_.note = kFoundFinished;
    if (plan_.is_folder) result_.note += kAndDigests;
    return true;
  }

  void prepare() {
    remove_temporaries();
    const std::string key = Journal::key(plan_, options_);
    journal_.emplace(partial_, key);
    journal_->absorb_ranks(key);
    finished_before_ = whole(journal_->finished(), units(), partial_);
    if (plan_.gguf) begin_files();
  }

  // Files that lie beside each other have got their names one by one.
  void begin_files() {
    std::set<std::string> published;
    if (!plan_.is_folder) published = whole(journal_->finished(), plan_.shards, final_folder());
    for (const OutputShard& section : sections_) {
      if (published.contains(section.part_of)) finished_before_.insert(section.name);
    }
    for (const OutputShard& file : plan_.shards) {
      if (published.contains(file.name)) continue;
      if (!options_.overwrite) check_name_is_free(plan_, file, out_);
      begin_file(file, partial_);
    }
  }

  // What a killed run left: AtomicFile's temporaries, in a folder that is ours alone.
  void remove_temporaries() const {
    std::vector<fs::path> stale;
    for (const auto& entry : fs::recursive_directory_iterator(partial_)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(".") && name.ends_with(".tmp")) stale.push_back(entry.path());
    }
    for (const fs::path& path : stale) fs::remove(path);
  }

  // Shards that an earlier run finished and that still are what they were: read again, every byte.
  std::set<std::string> whole(const std::map<std::string, FinishedShard>& before,
                              const std::vector<OutputShard>& shards, const fs::path& folder) const {
    std::set<std::string> all_there;
    if (before.empty()) return all_there;
    std::uint64_t bytes = 0;
    for (const OutputShard& shard : shards) bytes += before.contains(shard.name) ? shard.bytes : 0;
    Progress progress(mode_, "Checking what is finished", bytes);
    for (const OutputShard& shard : shards) {
      const auto found = before.find(shard.name);
      if (found == before.end()) continue;
      std::vector<char> ok(found->second.files.size());
      parallel_for(options_.jobs, ok.size(), [&](std::size_t i) {
        if (interrupted()) throw Interrupted{};
        ok[i] =
            trusting_ ? is_there(shard, found->second, i, folder) : is_whole(shard, found->second, i, folder);
        progress.add(found->second.files[i].bytes);
      });
      if (std::all_of(ok.begin(), ok.end(), [](char one) { return one != 0; })) all_there.insert(shard.name);
    }
    return all_there;
  }

  void write_shards() {
    Progress progress(mode_, "Converting", plan_.tensor_bytes);
    std::map<std::string, Digest> file_digests;
    std::optional<EarlyReading> early;
    if (options_.prove && EarlyReading::suits(plan_)) early.emplace(plan_, source_, options_.jobs);
    const PipelineContext context{plan_,
                                  options_,
                                  source_,
                                  given_ ? &*given_ : nullptr,
                                  progress,
                                  plan_.gguf ? &file_digests : nullptr,
                                  early ? &*early : nullptr};
    check_merges(plan_, source_);
    std::vector<const OutputShard*> left;
    for (const OutputShard& shard : units()) {
      if (!finished_before_.contains(shard.name)) {
        left.push_back(&shard);
        continue;
      }
      result_.reused += plan_.gguf ? shard.tensors.size() : 1;
      progress.add(shard.bytes);
    }
    assay::write_shards(context, left, partial_, [this](WrittenShard written) { close(std::move(written)); });
    if (early) early_reads_ = early->finish();
    if (plan_.gguf) note_files(file_digests);
    take_results(journal_->finished());
  }

  // A file's own digest is none of its sections'. Of files that an earlier run wrote whole it is made here.
  void note_files(const std::map<std::string, Digest>& known) {
    std::vector<HashJob> jobs;
    std::vector<const OutputShard*> files;
    for (const OutputShard& file : plan_.shards) {
      if (std::error_code error; !fs::exists(partial_ / file.name, error)) continue;  // published before
      if (const auto digest = known.find(file.name); digest != known.end()) {
        journal_->add(file.name, {{{file.name, file.bytes, digest->second}}, {}});
        continue;
      }
      files.push_back(&file);
      jobs.push_back({.path = partial_ / file.name, .size = file.bytes});
    }
    if (jobs.empty()) return;
    Progress progress(mode_, "Hashing", plan_.file_bytes);
    const HashOptions options{.jobs = options_.jobs, .keep_cache = true, .progress = &progress};
    hash_files(jobs, options, [&](std::size_t i, HashResult&& result) {
      if (result.error) throw *result.error;
      if (!result.complete) throw Interrupted{};
      journal_->add(files[i]->name, {{{files[i]->name, result.bytes, result.digest}}, {}});
    });
  }

  void take_results(const std::map<std::string, FinishedShard>& finished) {
    for (const auto& [name, shard] : finished)
      result_.errors.insert(result_.errors.end(), shard.errors.begin(), shard.errors.end());
    std::sort(result_.errors.begin(), result_.errors.end(),
              [](const WorkError& a, const WorkError& b) { return a.work < b.work; });
    const auto take = [&](const std::vector<OutputShard>& shards, std::map<std::string, Digest>& digests) {
      for (const OutputShard& shard : shards)
        for (const FinishedFile& file : finished.at(shard.name).files) digests[file.name] = file.sha256;
    };
    take(sections_, result_.tensor_digests);
    take(plan_.shards, result_.file_digests);
  }

  void close(WrittenShard written) {
    FinishedShard finished{written.sink.finished(), std::move(written.errors)};
    written.sink.commit();
    source_.check_unchanged();
    const std::lock_guard lock(journal_mutex_);
    journal_->add(written.shard.name, std::move(finished));
  }

  void write_text(const std::string& name, const std::string& text) {
    write_whole(partial_ / name, text);
    manifest_[name] = sha256_of_file(File::open(partial_ / name));
  }

  void write_the_rest() {
    if (!plan_.is_folder) return;
    manifest_ = result_.file_digests;
    if (!plan_.ranks) {
      write_around(plan_.checkpoint.index || plan_.shards.size() > 1 ? weight_map() : WeightMap{},
                   plan_.tensor_bytes, "");
    } else {
      std::vector<WeightMap> maps = rank_weight_maps();
      for (std::uint64_t rank = 0; rank < maps.size(); ++rank)
        write_around(maps[rank], plan_.ranks->tensor_bytes()[rank], rank_folder(rank, maps.size()) + '/');
    }
    std::string text;
    for (const auto& [name, digest] : manifest_) text += checksum_line(digest, name);
    write_whole(partial_ / kManifest, text);
  }

  // config.json, index and the other files of the model, into the folder `below` of the output.
  using WeightMap = std::vector<std::pair<std::string, std::string>>;  // a tensor's name, its file's
  void write_around(const WeightMap& map, std::uint64_t tensor_bytes, const std::string& below) {
    for (const auto& [name, text] : plan_.texts) write_text(name, text);
    if (!plan_.gguf && !plan_.checkpoint.config.empty()) {
      const RewrittenConfig config = rewrite_config(plan_, options_);
      result_.note = config.note;
      write_text(below + config.name, config.text);
      for (const auto& [name, text] : config.beside) write_text(below + name, text);
    }
    if (!map.empty()) {
      const auto numbered = parse_shard_name(plan_.shards.front().name);
      const std::string stem = numbered ? numbered->stem : "model";
      const Json index = {{"metadata", {{"total_size", tensor_bytes}}},
                          {"weight_map", Json::object_t(map.begin(), map.end())}};
      write_text(below + stem + ".safetensors.index.json", dump_json(index) + "\n");
    }
    copy_other_files(below);
  }

  // By name; what comes from a GGUF as it lies in the files.
  WeightMap weight_map() const {
    WeightMap map;
    for (const OutputShard& shard : plan_.shards) {
      for (const OutputTensor& tensor : shard.tensors) map.emplace_back(tensor.name, shard.name);
    }
    if (!plan_.gguf) std::sort(map.begin(), map.end());
    return map;
  }

  std::vector<WeightMap> rank_weight_maps() const {
    std::vector<WeightMap> maps(plan_.ranks->grid().tp);
    for (const OutputShard& shard : plan_.shards) {
      for (const RankFile& file : plan_.ranks->cut(plan_, shard).files) {
        for (const std::string& tensor : file.tensors)
          maps[file.rank].emplace_back(tensor, plan_.ranks->file_name(shard, file.rank));
      }
    }
    for (WeightMap& map : maps) std::sort(map.begin(), map.end());
    return maps;
  }

  void copy_other_files(const std::string& below) {
    for (const OtherFile& other : other_files(plan_)) {
      const fs::path to = partial_ / (below + other.name);
      fs::create_directories(to.parent_path());
      const File file = File::open(plan_.checkpoint.root / other.name);
      AtomicFile copy(to);
      copy_range(file, 0, copy, 0, file.size());
      copy.commit();
      manifest_[below + other.name] = sha256_of_file(File::open(to));
      ++result_.other_files;
    }
  }

  bool prove_it() {
    Progress progress(mode_, "Proving", 2 * plan_.tensor_bytes);
    result_.proof = prove(plan_, options_, source_, partial_, progress, early_reads_);
    return result_.proof->holds();
  }

  void finish() {
    for (const OutputShard& file : plan_.shards) {
      std::error_code error;
      if (!plan_.is_folder && fs::exists(partial_ / file.name, error))
        ResumableFile(partial_ / file.name).publish(final_folder() / file.name);
    }
    folder_.seal();
    if (plan_.is_folder)
      folder_.publish();
    else
      folder_.remove();
  }

  const fs::path& out_;
  const bool trusting_;
  PartialFolder& folder_;
  const fs::path& partial_;
  const ConversionPlan& plan_;
  const ConvertOptions& options_;
  ProgressMode mode_;
  CheckpointReader source_;
  std::optional<GivenScales> given_;
  std::optional<Journal> journal_;
  std::mutex journal_mutex_;
  std::vector<OutputShard> sections_;      // of a plan from or to GGUF
  std::set<std::string> finished_before_;  // by the run that this one resumes
  std::map<std::string, Digest> manifest_;
  EarlyReads early_reads_;
  ConvertResult result_;
};

}  // namespace

void rehearse(const ConversionPlan& plan, const ConvertOptions& options, const fs::path& out) {
  if (is_finished(plan, options, out)) return;
  check_merges(plan, CheckpointReader(plan.checkpoint));
  jobs_within_memory(plan, options);
  if (!plan.gguf && !plan.checkpoint.config.empty()) rewrite_config(plan, options);
}

ConvertResult convert(const fs::path& out, const ConversionPlan& plan, const ConvertOptions& options,
                      ProgressMode progress) {
  jobs_within_memory(plan, options);
  PartialFolder folder(out, begin_of(options));
  return Conversion(out, folder, plan, options, progress).run();
}

ConvertResult finish_shared(const fs::path& out, PartialFolder& folder, const ConversionPlan& plan,
                            const ConvertOptions& options, ProgressMode progress) {
  return Conversion(out, folder, plan, options, progress, true).run();
}

}  // namespace assay
