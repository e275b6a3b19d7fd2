#include "convert/convert.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <set>

#include "convert/config_rewrite.h"
#include "convert/copy_range.h"
#include "convert/journal.h"
#include "core/formats/checksum_manifest.h"
#include "core/formats/stream_digest.h"
#include "core/system/error.h"
#include "core/system/report.h"
#include "core/system/text.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr const char* kManifest = "SHA256SUMS";
constexpr std::uint64_t kReserve = 64 << 20;  // for the file system's own records

bool is_within(const fs::path& inner, const fs::path& outer) {
  const fs::path relative = fs::weakly_canonical(inner).lexically_relative(fs::weakly_canonical(outer));
  return !relative.empty() && *relative.begin() != "..";
}

// Weights in whatever container, and lists of what is no longer so.
bool is_left_behind(const std::string& name, const ConversionPlan& plan) {
  static constexpr std::array<std::string_view, 12> kEndings = {".safetensors", ".safetensors.index.json",
                                                                ".bin",         ".bin.index.json",
                                                                ".pth",         ".pt",
                                                                ".gguf",        ".msgpack",
                                                                ".h5",          ".ot",
                                                                ".sha256",      ".onnx"};
  // A golden record (assay check) tells what the source is, not what becomes of it.
  if (name == "config.json" || name == kManifest || name == "assay-golden.json") return true;
  const bool stays_quantized = plan.spec.kind == Spec::Kind::keep || plan.spec.kind == Spec::Kind::reblock;
  for (const std::string_view quantizer :
       {"hf_quant_config.json", "quantize_config.json", "quant_config.json"})
    if (name == quantizer) return !stays_quantized;
  for (const CheckpointFile& file : plan.checkpoint.files) {
    if (file.name == name) return true;
  }
  return std::any_of(kEndings.begin(), kEndings.end(), [&](auto ending) { return name.ends_with(ending); });
}

class Conversion {
 public:
  Conversion(const fs::path& in, const fs::path& out, const ConversionPlan& plan,
             const ConvertOptions& options, ProgressMode mode)
      : in_(in),
        folder_(out, begin_of(options)),
        partial_(folder_.path()),
        plan_(plan),
        options_(options),
        mode_(mode),
        source_(plan.checkpoint) {
    if (!options.scales_from.empty()) given_.emplace(options.scales_from, options.jobs);
  }

  ConvertResult run() {
    try {
      if (was_published()) return std::move(result_);
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
  // By a run that was killed while it tidied up. What is left of it goes.
  bool was_published() {
    if (!options_.resume || !folder_.is_sealed()) return false;
    const auto finished = Journal::read(folder_.record(), Journal::key(plan_, options_));
    if (whole_shards(finished, folder_.out()).size() != plan_.shards.size()) {
      folder_.unseal();
      return false;
    }
    folder_.remove();
    take_errors(finished);
    result_.shards_reused = plan_.shards.size();
    result_.note = kFoundWhole;
    return true;
  }

  void prepare() {
    remove_temporaries();
    journal_.emplace(partial_, Journal::key(plan_, options_));
    finished_before_ = whole_shards(journal_->finished(), partial_);
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
  std::set<std::string> whole_shards(const std::map<std::string, FinishedShard>& before,
                                     const fs::path& folder) const {
    std::set<std::string> all_there;
    std::uint64_t bytes = 0;
    for (const auto& [name, shard] : before)
      for (const FinishedFile& file : shard.files) bytes += file.bytes;
    if (before.empty()) return all_there;
    Progress progress(mode_, "Checking what is finished", bytes);
    for (const OutputShard& shard : plan_.shards) {
      const auto found = before.find(shard.name);
      if (found == before.end()) continue;
      std::vector<char> whole(found->second.files.size());
      parallel_for(options_.jobs, whole.size(), [&](std::size_t i) {
        if (interrupted()) throw Interrupted{};
        whole[i] = is_whole(folder, found->second.files[i]);
        progress.add(found->second.files[i].bytes);
      });
      if (std::all_of(whole.begin(), whole.end(), [](char ok) { return ok != 0; }))
        all_there.insert(shard.name);
    }
    return all_there;
  }

  void write_shards() {
    Progress progress(mode_, "Converting", plan_.tensor_bytes);
    const PipelineContext context{plan_, options_, source_, given_ ? &*given_ : nullptr, progress};
    check_merges(plan_, source_);
    std::vector<const OutputShard*> left;
    for (const OutputShard& shard : plan_.shards) {
      if (!finished_before_.contains(shard.name)) {
        left.push_back(&shard);
        continue;
      }
      ++result_.shards_reused;
      progress.add(shard.bytes);
    }
    assay::write_shards(context, left, partial_, [this](WrittenShard written) { close(std::move(written)); });
    take_errors(journal_->finished());
  }

  void take_errors(const std::map<std::string, FinishedShard>& finished) {
    for (const auto& [name, shard] : finished)
      result_.errors.insert(result_.errors.end(), shard.errors.begin(), shard.errors.end());
    std::sort(result_.errors.begin(), result_.errors.end(),
              [](const WorkError& a, const WorkError& b) { return a.work < b.work; });
  }

  void close(WrittenShard written) {
    const std::vector<Digest> digests = written.sink.file_digests();
    written.sink.commit();
    FinishedShard finished{{}, std::move(written.errors)};
    for (std::size_t i = 0; i < digests.size(); ++i) {
      const std::string& name = written.sink.names()[i];
      finished.files.push_back({name, fs::file_size(partial_ / name), digests[i]});
    }
    source_.check_unchanged();
    const std::lock_guard lock(journal_mutex_);
    journal_->add(written.shard.name, std::move(finished));
  }

  void write_text(const std::string& name, const std::string& text) {
    AtomicFile file(partial_ / name);
    file.write(text);
    file.commit();
    manifest_[name] = sha256_of_file(File::open(partial_ / name));
  }

  void write_the_rest() {
    for (const auto& [name, shard] : journal_->finished())
      for (const FinishedFile& file : shard.files) manifest_[file.name] = file.sha256;
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
    AtomicFile file(partial_ / kManifest);
    file.write(text);
    file.commit();
  }

  // config.json, index and the other files of the model, into the folder `below` of the output.
  using WeightMap = std::map<std::string, std::string>;
  void write_around(const WeightMap& map, std::uint64_t tensor_bytes, const std::string& below) {
    if (!plan_.checkpoint.config.empty()) {
      const RewrittenConfig config = rewrite_config(plan_, options_);
      result_.note = config.note;
      write_text(below + "config.json", config.text);
      for (const auto& [name, text] : config.beside) write_text(below + name, text);
    }
    if (!map.empty()) {
      const auto numbered = parse_shard_name(plan_.shards.front().name);
      const std::string stem = numbered ? numbered->stem : "model";
      const Json index = {{"metadata", {{"total_size", tensor_bytes}}}, {"weight_map", map}};
      write_text(below + stem + ".safetensors.index.json", dump_json(index) + "\n");
    }
    std::error_code error;
    if (options_.merge || fs::is_directory(in_, error)) copy_other_files(below);
  }

  WeightMap weight_map() const {
    WeightMap map;
    for (const OutputShard& shard : plan_.shards) {
      for (const OutputTensor& tensor : shard.tensors) map[tensor.name] = shard.name;
    }
    return map;
  }

  std::vector<WeightMap> rank_weight_maps() const {
    std::vector<WeightMap> maps(plan_.ranks->grid().tp);
    for (const OutputShard& shard : plan_.shards) {
      for (const RankFile& file : plan_.ranks->cut(plan_, shard).files) {
        for (const std::string& tensor : file.tensors)
          maps[file.rank][tensor] = plan_.ranks->file_name(shard, file.rank);
      }
    }
    return maps;
  }

  void copy_other_files(const std::string& below) {
    static constexpr std::array<std::string_view, 2> kSkipped = {".git", ".cache"};
    for (const TreeEntry& entry : list_tree(plan_.checkpoint.root, kSkipped)) {
      const fs::path from = plan_.checkpoint.root / entry.name;
      std::error_code error;
      const bool is_file = entry.kind == TreeEntry::Kind::regular ||
                           (entry.kind == TreeEntry::Kind::link && fs::is_regular_file(from, error));
      if (!is_file || is_left_behind(entry.name, plan_)) continue;
      const fs::path to = partial_ / (below + entry.name);
      fs::create_directories(to.parent_path());
      const File file = File::open(from);
      AtomicFile copy(to);
      copy_range(file, 0, copy, 0, file.size());
      copy.commit();
      manifest_[below + entry.name] = sha256_of_file(File::open(to));
      ++result_.other_files;
    }
  }

  bool prove_it() {
    Progress progress(mode_, "Proving", 2 * plan_.tensor_bytes);
    result_.proof = prove(plan_, options_, source_, partial_, progress);
    return result_.proof->holds();
  }

  void finish() {
    folder_.seal();
    folder_.publish();
  }

  const fs::path& in_;
  PartialFolder folder_;
  const fs::path& partial_;
  const ConversionPlan& plan_;
  const ConvertOptions& options_;
  ProgressMode mode_;
  CheckpointReader source_;
  std::optional<GivenScales> given_;
  std::optional<Journal> journal_;
  std::mutex journal_mutex_;
  std::set<std::string> finished_before_;  // by the run that this one resumes
  std::map<std::string, Digest> manifest_;
  ConvertResult result_;
};

}  // namespace

// A GGUF where one is asked for, or a folder with the list of digests that a conversion leaves in it.
namespace {
bool may_be_replaced(const fs::path& out, const ConvertOptions& options) {
  std::error_code error;
  return (fs::is_regular_file(out, error) && options.to.starts_with("gguf:")) ||
         (fs::is_directory(out, error) && fs::is_regular_file(out / kManifest, error));
}
}  // namespace

PartialFolder::Begin begin_of(const ConvertOptions& options) {
  using Begin = PartialFolder::Begin;
  return options.overwrite ? Begin::anew : options.resume ? Begin::resume : Begin::empty;
}

bool is_whole(const fs::path& folder, const FinishedFile& file) {
  std::error_code error;
  if (!is_safe_relative_path(file.name)) return false;
  const fs::path path = folder / file.name;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) == file.bytes && !error &&
         sha256_of_file(File::open(path)) == file.sha256;
}

void check_output(const fs::path& in, const fs::path& out, const ConvertOptions& options) {
  std::error_code error;
  if (out.empty()) throw Error::usage("OUT is empty").remedy("name a new folder");
  const fs::path source = fs::is_directory(in, error) ? in : in.parent_path();
  if (is_within(out, source.empty() ? fs::path(".") : source) && fs::is_directory(in, error))
    throw Error::refused("the output would lie in the source's own folder")
        .in(out)
        .remedy("name another folder");
  // A file that a run gave its name before it was killed: its journal, which the conversion reads, knows it.
  if (fs::is_symlink(parent_of_output(out) / name_of_output(out), error))
    throw Error::refused("exists already, and is a link").in(out).remedy("name a new folder");
  const bool is_recorded = fs::exists(publication_record(out), error);
  const bool is_file_of_a_run = fs::is_regular_file(out, error) && fs::exists(partial_folder(out), error);
  const bool may_be_ours = options.resume && (is_recorded || is_file_of_a_run);
  const bool there =
      fs::exists(out, error) && !may_be_ours && !(fs::is_directory(out, error) && fs::is_empty(out, error));
  if (there && !options.overwrite)
    throw Error::refused("exists already")
        .in(out)
        .remedy("name a new folder, or replace it with --overwrite");
  if (there && (is_within(in, out) || !may_be_replaced(out, options)))
    throw Error::refused("exists already, and is not what a conversion wrote")
        .in(out)
        .remedy("name a new folder");
  if (!fs::is_directory(parent_of_output(out), error))
    throw Error::input("there is no such folder").in(parent_of_output(out));
  if (!options.overwrite && !options.resume && fs::exists(partial_folder(out), error)) {
    throw Error::refused("an unfinished conversion is here")
        .in(partial_folder(out))
        .remedy("continue it with --resume, or begin anew with --overwrite");
  }
}

Space space_for(std::uint64_t bytes, const fs::path& out) {
  struct statvfs s {};
  if (::statvfs(parent_of_output(out).c_str(), &s) != 0)
    throw Error::from_errno("ask for free space", errno).in(out);
  return {bytes + kReserve, std::uint64_t{s.f_bavail} * s.f_frsize};
}

void Space::require(const fs::path& out) const {
  if (needed <= free) return;
  throw Error::io(fmt::format("{} are needed, {} are free", human_bytes(needed), human_bytes(free)))
      .in(parent_of_output(out));
}

Space check_space(const ConversionPlan& plan, const fs::path& out) {
  Space space = space_for(plan.file_bytes, out);
  const fs::path partial = partial_folder(out);
  const auto there = [&](const std::string& name, std::uint64_t bytes) {
    std::error_code error;
    if (fs::file_size(partial / name, error) == bytes && !error) space.needed -= bytes;
  };
  std::error_code error;
  if (!fs::exists(partial, error)) return space;
  for (const OutputShard& shard : plan.shards) {
    if (!plan.ranks) there(shard.name, shard.bytes);
    if (plan.ranks)
      for (const RankFile& file : plan.ranks->cut(plan, shard).files) there(file.name, file.bytes);
  }
  return space;
}

void rehearse(const ConversionPlan& plan, const ConvertOptions& options) {
  check_merges(plan, CheckpointReader(plan.checkpoint));
  jobs_within_memory(plan, options);
  if (!plan.checkpoint.config.empty()) rewrite_config(plan, options);
}

ConvertResult convert(const fs::path& in, const fs::path& out, const ConversionPlan& plan,
                      const ConvertOptions& options, ProgressMode progress) {
  return Conversion(in, out, plan, options, progress).run();
}

}  // namespace assay
