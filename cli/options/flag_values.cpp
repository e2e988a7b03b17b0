#include "cli/options/flag_values.hpp"

namespace haulout::cli::flag_values {
namespace {

std::string apply_selector(Settings& settings, const std::string& value) {
  const auto selector = k8s::parse_label_selector(value);
  if (!selector) return selector.error().message();
  settings.selector = value;
  settings.selects = true;
  return {};
}

}  // namespace

Flag selector_flag() {
  return {"selector",
          'l',
          Flag::Kind::value,
          "",
          "Nodes with these labels, instead of names: key=value, key!=value, key in (a,b), key, !key; commas mean and.",
          apply_selector};
}

}  // namespace haulout::cli::flag_values
