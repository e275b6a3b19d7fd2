#include "convert/equal_exported.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "convert/equal_gguf.h"
#include "core/model/derived_tensor.h"
#include "core/model/gguf_export.h"
#include "core/model/gguf_rules.h"
#include "core/model/open_model.h"
#include "core/model/stored_names.h"
#include "core/system/threads.h"

namespace assay {
namespace {

class Exported {
 public:
  Exported(const Side& checkpoint, const Side& gguf, DescribedModel said, const GgufFamily& family,
           bool gguf_first)
      : checkpoint_(checkpoint),
        gguf_(gguf),
        gguf_first_(gguf_first),
        said_(std::move(said)),
        reader_(checkpoint.reader, checkpoint.stored) {
    for (GgufTensor& tensor :
         gguf_tensors(said_.config, said_.tree, family, checkpoint.checkpoint, checkpoint.stored)) {
      for (const DerivedTensor::Piece& piece : tensor.made.pieces) used_.insert(piece.source);
      if (tensor.made.times) used_.insert(*tensor.made.times);
      std::string name = tensor.made.name;
      made_.emplace(std::move(name), std::move(tensor.made));
    }
  }

  EqualReport run(const EqualOptions& options, Progress& progress) {
    const auto& tensors = gguf_.stored.tensors;
    std::vector<std::optional<Difference>> found(tensors.size());
    std::set<std::string_view> here;
    for (const LogicalTensor& tensor : tensors) here.insert(tensor.name);
    parallel_for(options.jobs, tensors.size(), [&](std::size_t i) {
      const auto made = made_.find(tensors[i].name);
      if (made == made_.end())
        found[i] = Difference{tensors[i].name, only_in(gguf_first_)};
      else if (!interrupted())
        found[i] = compare_with_made(gguf_, tensors[i], reader_, made->second, !gguf_first_,
                                     options.tolerance, progress);
    });
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      ++report_.tensors;
      report_.elements += made_.contains(tensors[i].name) ? tensors[i].elements() : 0;
      if (found[i]) report_.differences.push_back(std::move(*found[i]));
    }
    for (const auto& [name, made] : made_)
      if (!here.contains(name)) only_in_checkpoint(name);
    note_left_out(options);
    return std::move(report_);
  }

 private:
  static std::string only_in(bool first) { return first ? "only in the first" : "only in the second"; }

  void only_in_checkpoint(const std::string& name) {
    ++report_.tensors;
    report_.differences.push_back({name, only_in(!gguf_first_)});
  }

  // What the converter leaves where it is.
  void note_left_out(const EqualOptions& options) {
    const TensorLookup lookup(said_.tree);
    std::size_t passed_over = 0;
    for (std::uint32_t i = 0; i < checkpoint_.stored.tensors.size(); ++i) {
      if (used_.contains(i)) continue;
      const std::string& name = checkpoint_.stored.tensors[i].name;
      const auto found = lookup.find(name);
      if (found && found->mtp && !options.without_mtp)
        only_in_checkpoint(name);
      else
        ++passed_over;
    }
    if (passed_over > 0)
      report_.notes.push_back(
          fmt::format("{} tensors of the checkpoint have no tensor in a GGUF, and are passed over: buffers, "
                      "towers, what its keys say",
                      passed_over));
  }

  const Side& checkpoint_;
  const Side& gguf_;
  bool gguf_first_;
  DescribedModel said_;
  DerivedReader reader_;
  std::map<std::string, DerivedTensor> made_;
  std::set<std::uint32_t> used_;  // tensors of the checkpoint
  EqualReport report_;
};

}  // namespace

std::optional<EqualReport> compare_exported(const Side& checkpoint, const Side& gguf, bool gguf_first,
                                            const EqualOptions& options, Progress& progress) {
  if (checkpoint.checkpoint.config.empty()) return std::nullopt;
  DescribedModel said = describe_model(checkpoint.checkpoint);
  const GgufFamily* family = gguf_family_of(said.tree);
  if (family == nullptr || gguf.checkpoint.gguf->text("general.architecture") != family->architecture)
    return std::nullopt;
  return Exported(checkpoint, gguf, std::move(said), *family, gguf_first).run(options, progress);
}

}  // namespace assay
