#include "sim/loader.hpp"

#include <fmt/format.h>

#if __has_include("k8s/yaml_codec.hpp")
#include "k8s/yaml_codec.hpp"
#define HAULOUT_SIM_YAML 1
#endif

namespace haulout::sim {
namespace {

Result<> collect(Json document, std::vector<Json>& into) {
  if (document.is_null()) return {};
  if (!document.is_object()) return Error(Errc::invalid, "not a Kubernetes object");
  const std::string kind = text(document, "/kind");
  if (document.contains("items") && document["items"].is_array()) {
    // A typed list ("PodList", as the API answers) leaves the kind out of its items.
    const std::string of = kind.ends_with("List") ? kind.substr(0, kind.size() - 4) : "";
    for (Json& item : document["items"]) {
      if (!item.contains("kind") && !of.empty()) item["kind"] = of;
      auto added = collect(std::move(item), into);
      if (!added) return added;
    }
    return {};
  }
  if (kind.empty()) return Error(Errc::invalid, "an object without kind");
  if (!find_kind(kind)) return {};
  if (name_of(document).empty()) return Error(Errc::invalid, fmt::format("a {} without metadata.name", kind));
  into.push_back(std::move(document));
  return {};
}

Result<Json> parse_document(std::string_view document) {
  Json json = Json::parse(document, nullptr, false);
  if (!json.is_discarded()) return json;
#ifdef HAULOUT_SIM_YAML
  auto converted = k8s::yaml_to_json(document);
  if (!converted) return std::move(converted).error();
  return Json::parse(*converted, nullptr, false);
#else
  return Error(Errc::invalid, "not JSON");
#endif
}

// YAML documents are divided by lines that begin with "---".
std::vector<std::string_view> documents(std::string_view text) {
  std::vector<std::string_view> result;
  std::size_t begin = 0;
  for (std::size_t line = 0; line < text.size();) {
    const auto end = std::min(text.find('\n', line), text.size());
    if (text.substr(line, 3) == "---") {
      result.push_back(text.substr(begin, line - begin));
      begin = std::min(end + 1, text.size());
    }
    line = end + 1;
  }
  result.push_back(text.substr(begin));
  return result;
}

bool blank(std::string_view text) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    const auto first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#') return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

}  // namespace

Result<std::vector<Json>> read_objects(std::string_view text) {
  std::vector<Json> objects;
  std::size_t number = 0;
  for (const auto document : documents(text)) {
    ++number;
    if (blank(document)) continue;
    auto json = parse_document(document);
    Result<> added = json ? collect(*std::move(json), objects) : Result<>(std::move(json).error());
    if (!added) return std::move(added).error().with_context(fmt::format("document {}", number));
  }
  return objects;
}

}  // namespace haulout::sim
