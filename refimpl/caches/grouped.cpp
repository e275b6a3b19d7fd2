// Grouped windows and shared keys and values (step/layer_groups.h): options of the model, by the same name as caches.
#include "core/system/error.h"
#include "refimpl/caches/methods.h"

namespace assay {
namespace {

class GroupedLayers : public CacheMethod {
 public:
  GroupedLayers(std::string name, const LayerGroups& groups) : name_(std::move(name)), groups_(groups) {}
  std::string name() const override { return name_; }
  std::unique_ptr<LayerPolicy> layer(const CacheLayer&, std::size_t) const override { return nullptr; }
  LayerGroups groups() const override { return groups_; }

 private:
  std::string name_;
  LayerGroups groups_;
};

}  // namespace

MadeCacheMethod make_grouped_layers(MethodText& text) {
  LayerGroups groups;
  groups.every = text.number("every", 6, 1);
  groups.window = text.number("window", 64, 1);
  groups.share = text.number("share", 1, 1);
  if (groups.every == kEverything || groups.share == kEverything)
    throw Error::usage("grouped: every and share are numbers of layers");
  return std::make_shared<GroupedLayers>(text.text(), groups);
}

}  // namespace assay
