#include <boost/json.hpp>

#include "k8s/yaml_codec.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace haulout::fuzz {
namespace {

bool is_json(const std::string& text) {
  boost::system::error_code problem;
  boost::json::parse_options options;
  options.max_depth = 1024;
  options.allow_invalid_utf8 = true;  // the conversion keeps invalid UTF-8; only the reader of the JSON refuses it
  boost::json::parse(text, problem, {}, options);
  return !problem;
}

}  // namespace

static void one(std::string_view input) {
  std::ignore = k8s::yaml_to_tree(input);
  const auto documents = k8s::yaml_documents_to_json(input);
  if (documents)
    for (const std::string& document : *documents) must(is_json(document), "each document becomes JSON");
  const auto json = k8s::yaml_to_json(input);
  if (!json) return must(!json.error().message().empty(), "an error says what it is");
  must(is_json(*json), "YAML becomes JSON");
  const auto again = k8s::yaml_to_json(*json);
  must(again && *again == *json, "JSON is YAML that stays as it is");
}

static const Target target("yaml", one);

}  // namespace haulout::fuzz
