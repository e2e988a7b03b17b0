#include "drain/cordon.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {
namespace {

std::optional<drain::CordonMark> read(std::string_view annotation) {
  k8s::Node node;
  node.annotations[std::string(drain::cordon_annotation)] = std::string(annotation);
  return drain::mark_of(node);
}

}  // namespace

static void one(std::string_view input) {
  const auto mark = read(input);
  if (!mark) return;
  const auto again = read(drain::encode_mark(*mark));
  must(again && again->run == mark->run && again->by == mark->by, "what is written is read again");
  must(again->at == std::chrono::floor<std::chrono::seconds>(mark->at), "with its time in whole seconds");
}

static const Target target("cordon_mark", one);

}  // namespace haulout::fuzz
