#include "placement/pod_fit.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace haulout::placement {
namespace {

// Lists the pods whose answer is `fit`, each with its message. Names only the first five, because the text must fit
// into a Node's annotation and an Event.
std::string listed(const std::vector<PodFit>& fits, Fit fit) {
  constexpr std::size_t shown = 5;
  std::string text;
  std::size_t seen = 0;
  for (const PodFit& one : fits)
    if (one.fit == fit && ++seen <= shown)
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", one.pod, one.message);
  return seen <= shown ? text : fmt::format("{} and {} more", text, seen - shown);
}

}  // namespace

std::string_view to_string(Fit fit) {
  switch (fit) {
    case Fit::fits: return "fits";
    case Fit::does_not_fit: return "does-not-fit";
    case Fit::unknown: return "unknown";
  }
  return "";
}

std::size_t count(const std::vector<PodFit>& fits, Fit fit) {
  return static_cast<std::size_t>(
      std::count_if(fits.begin(), fits.end(), [fit](const PodFit& one) { return one.fit == fit; }));
}

std::string clause(const PodFit& fit) {
  switch (fit.fit) {
    case Fit::fits: return "would find capacity on another node, for example " + fit.node;
    case Fit::does_not_fit: return "would find no capacity on other nodes: " + fit.message;
    case Fit::unknown: break;
  }
  return "may find no capacity on other nodes: " + fit.message;
}

std::string summary(const std::string& node, const std::vector<PodFit>& fits) {
  const std::size_t none = count(fits, Fit::does_not_fit);
  const std::size_t unknown = count(fits, Fit::unknown);
  std::string text;
  if (none != 0)
    text = fmt::format("{} pod{} of node {} would find no capacity on other nodes: {}", none, none == 1 ? "" : "s",
                       node, listed(fits, Fit::does_not_fit));
  if (unknown != 0)
    text += fmt::format("{}it is unknown whether {} pod{} of node {} would find capacity on other nodes: {}",
                        text.empty() ? "" : "; ", unknown, unknown == 1 ? "" : "s", node, listed(fits, Fit::unknown));
  return text;
}

}  // namespace haulout::placement
