#include "convert/equal_gguf.h"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "core/model/gguf_import.h"
#include "core/model/stored_names.h"
#include "core/system/error.h"
#include "core/system/threads.h"

namespace assay {
namespace {

bool is_gguf(const Side& side) {
  return side.checkpoint.container == Checkpoint::Container::gguf;
}

class AcrossNames {
 public:
  AcrossNames(const Side& named, const Side& gguf, const GgufFamily& family, bool gguf_first)
      : named_(named), gguf_first_(gguf_first), reader_(gguf.reader, gguf.stored) {
    for (DerivedTensor& tensor : hf_tensors(gguf.checkpoint, family, gguf.stored, report_.notes)) {
      std::string name = tensor.name;
      derived_.emplace(std::move(name), std::move(tensor));
    }
    if (named.checkpoint.config.empty()) return;
    tree_ = std::make_unique<ModuleTree>(describe(ModelConfig::read(named.checkpoint.config)));
    lookup_ = std::make_unique<TensorLookup>(*tree_);
  }

  EqualReport run(double rtol, int jobs, Progress& progress) {
    const auto& tensors = named_.stored.tensors;
    std::vector<std::optional<Difference>> found(tensors.size());
    std::vector<const DerivedTensor*> others(tensors.size());
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto other = derived_.find(canonical(tensors[i].name));
      if (other != derived_.end())
        others[i] = &other->second;
      else if (has_no_place(tensors[i].name))
        ++left_out;
      else
        found[i] = Difference{tensors[i].name, gguf_first_ ? "only in the second" : "only in the first"};
    }
    parallel_for(jobs, tensors.size(), [&](std::size_t i) {
      if (others[i] != nullptr && !interrupted()) found[i] = compare(tensors[i], *others[i], rtol, progress);
    });
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (others[i] != nullptr) {
        ++report_.tensors;
        report_.elements += tensors[i].elements();
        derived_.erase(others[i]->name);
      }
      if (found[i]) report_.differences.push_back(std::move(*found[i]));
    }
    for (const auto& [name, tensor] : derived_)
      report_.differences.push_back({name, gguf_first_ ? "only in the first" : "only in the second"});
    if (left_out > 0)
      report_.notes.push_back(fmt::format(
          "{} tensors of multi-token prediction, or buffers, have no place in this GGUF", left_out));
    return std::move(report_);
  }

 private:
  // Some checkpoints spell the start of every name differently.
  std::string canonical(const std::string& name) const {
    if (lookup_ == nullptr) return name;
    const auto found = lookup_->find(name);
    return found ? expand(found->spec->name, found->indices) : name;
  }

  bool has_no_place(const std::string& name) const {
    if (is_known_buffer(name)) return true;
    const auto found = lookup_ == nullptr ? std::nullopt : lookup_->find(name);
    return found && (found->mtp || found->spec->storage != Storage::own);
  }

  std::optional<Difference> compare(const LogicalTensor& own, const DerivedTensor& other, double rtol,
                                    Progress& progress) const {
    if (own.shape != other.shape) {
      return Difference{own.name, fmt::format("[{}] against [{}]", fmt::join(own.shape, ", "),
                                              fmt::join(other.shape, ", "))};
    }
    const StoredReader reader(named_.reader, own);
    const ReadRows named = [&](std::uint64_t first, std::uint64_t count, std::span<float> out) {
      reader.decode_rows(first, count, out);
    };
    const ReadRows gguf = [&](std::uint64_t first, std::uint64_t count, std::span<float> out) {
      reader_.read(other, first, count, out);
    };
    return compare_rows({own.name, own.all_rows(), own.columns, own.rows_together()},
                        gguf_first_ ? gguf : named, gguf_first_ ? named : gguf, rtol, progress);
  }

  const Side& named_;
  bool gguf_first_;
  DerivedReader reader_;
  std::map<std::string, DerivedTensor> derived_;
  std::unique_ptr<ModuleTree> tree_;
  std::unique_ptr<TensorLookup> lookup_;
  EqualReport report_;
};

}  // namespace

std::optional<EqualReport> compare_with_gguf(const Side& a, const Side& b, double rtol, int jobs,
                                             Progress& progress) {
  if (is_gguf(a) == is_gguf(b)) return std::nullopt;
  const Side &gguf = is_gguf(a) ? a : b, &named = is_gguf(a) ? b : a;
  const GgufFamily* family = family_of_gguf(gguf.checkpoint);
  if (family == nullptr) return std::nullopt;
  return AcrossNames(named, gguf, *family, is_gguf(a)).run(rtol, jobs, progress);
}

}  // namespace assay
