// A model whose layers are grouped anew (refimpl/step/layer_groups.h): another one, of the same files.
#pragma once

#include <memory>
#include <string>

#include "refimpl/models/model.h"
#include "refimpl/step/layer_groups.h"

namespace assay {

class GroupedModel {
 public:
  GroupedModel(const std::string& path, int jobs, const LayerGroups& groups)
      : weights_(path, jobs), model_(make_model(weights_.regroup(groups), {})) {}
  const LanguageModel& model() const { return *model_; }

 private:
  Weights weights_;
  std::unique_ptr<LanguageModel> model_;
};

}  // namespace assay
